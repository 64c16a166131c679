import { describe, expect, it } from "vitest";
import { age, noticeWords, plain, shortDevice, statusWords, unlinked } from "../src/status/words";
import { remark, shownTrace, status } from "./examples";

const now = Date.parse("2026-01-01T00:05:00+00:00");

describe("the status item", () => {
  it("names the extension and the time of a step", () => {
    const shown = statusWords("ready", status(), { edited: false }, now);
    expect(shown.text).toBe("$(flame) DeepScope 2.79 s");
    expect(shown.tooltip.slice(0, 3)).toEqual([shownTrace().verdict, "train.py, fit, steps 2–4, 5 min ago", "step 2.79 s"]);
    expect(statusWords("ready", status({ stepTimeWords: "" }), { edited: false }, now).text).toBe("$(flame) DeepScope fit");
  });

  it("says whether a change has helped, and when it may be chance", () => {
    const comparison = { isChosen: false, stepsDiffer: false, isSameCode: true };
    const words = { stepTimeWords: "step 2.95 → 2.79 s, -5.4 %", remarks: [remark("within noise (±12 %)"), remark("same code", "The same code ran."), remark("machine busy (38 %)")] };
    const shown = statusWords("ready", status({ baseline: shownTrace(), comparison, ...words }), { edited: false }, now);
    expect(shown.text).toBe("$(flame) DeepScope 2.95 → 2.79 s, -5.4 %, within noise (±12 %), same code, machine busy (38 %) $(diff)");
    expect(shown.tooltip[2]).toBe("step 2.95 → 2.79 s, -5.4 %, within noise (±12 %), same code, machine busy (38 %)");
    expect(shown.tooltip[3]).toBe("The same code ran.");
    expect(shown.tooltip).toContain("compared with the run before, /w/runs/a");
  });

  it("is no warning where the recorder had remarks, which its tooltip has", () => {
    const shown = statusWords("ready", status({ trace: shownTrace({ warnings: ["2 threads ran unrecorded"] }) }), { edited: false }, now);
    expect(shown.isWarning).toBe(false);
    expect(shown.tooltip).toContain("2 threads ran unrecorded");
  });

  it("names a newer trace of somebody else's code", () => {
    const shown = statusWords("ready", status({ newer: shownTrace({ path: "/w/foreign" }) }), { edited: false }, now);
    expect(shown.tooltip).toContain("/w/foreign is newer, and no code of it is here");
  });

  it("says that the text has changed, and that a baseline is compared with", () => {
    const shown = statusWords("ready", status({ baseline: shownTrace({ path: "/w/old" }), stepTimeWords: "step 2.79 → 2.79 s" }), { edited: true }, now);
    expect(shown.text).toBe("$(flame) DeepScope 2.79 → 2.79 s $(edit) text changed since $(diff)");
    expect(shown.tooltip).toContain("compared with /w/old");
  });

  it("makes no icon of a name in a trace", () => {
    const shown = statusWords("ready", status({ trace: shownTrace({ stage: "$(trash)" }), stepTimeWords: "" }), { edited: false }, now);
    expect(shown.text).not.toContain("$(trash)");
    expect(plain("a $(x) b")).toBe("a $\u200b(x) b");
  });

  it.each(["off", "restricted", "starting", "failed", "loading", "none", "error"] as const)("has words when %s", (standing) => {
    expect(statusWords(standing, undefined, { edited: false }, now).tooltip.join("")).not.toBe("");
  });

  it.each([
    ["NVIDIA H100 80GB HBM3", "H100"],
    ["NVIDIA GeForce RTX 4090", "RTX 4090"],
    ["AMD EPYC", "EPYC"],
    ["CPU", "CPU"],
  ])("shortens %s to %s", (device, short) => expect(shortDevice(device)).toBe(short));
});

describe("the notice of a new trace", () => {
  it("says how long a step is, and what most of it goes to", () => {
    const shown = status({ baseline: shownTrace(), comparison: { isChosen: false, stepsDiffer: true, isSameCode: false }, stepTimeWords: "step 2.95 → 2.79 s" });
    expect(noticeWords(shownTrace({ verdict: "Waits for data: 41 % of each step, from data.py:46." }), shown)).toBe(
      "fit, steps 2–4: step 2.95 → 2.79 s. Waits for data: 41 % of each step, from data.py:46.",
    );
  });

  it("goes without a stage and without steps", () => {
    const words = noticeWords(shownTrace({ stage: "", stepsWords: "the whole recording", verdict: "The device is busy." }), status({ stepTimeWords: "" }));
    expect(words).toBe("the whole recording. The device is busy.");
  });
});

it("names in messages are no links, whatever they look like", () => {
  expect(unlinked("[run](command:x) [a](https://b)")).toBe("[run]\u200b(command:x) [a]\u200b(https://b)");
});

describe("how long ago something was", () => {
  it.each([
    [0, "just now"],
    [59_999, "just now"],
    [5 * 60_000, "5 min ago"],
    [3 * 3_600_000, "3 h ago"],
    [86_400_000, "1 day ago"],
    [3 * 86_400_000, "3 days ago"],
  ])("%d ms ago is %s", (ms, words) => expect(age(1_000, 1_000 + ms)).toBe(words));

  it("is not said of a time that is not known", () => expect(age(Number.NaN, 0)).toBe(""));
});
