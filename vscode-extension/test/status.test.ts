import { describe, expect, it } from "vitest";
import { noticeWords } from "../src/run/noticeWords";
import { plain, shortDevice, statusWords, stepWords, unlinked } from "../src/status/words";
import { hotLine, shownTrace, status } from "./examples";

const now = Date.parse("2026-01-01T00:05:00+00:00");

describe("the status item", () => {
  it("names stage, device and age", () => {
    expect(statusWords("ready", status(), { edited: false }, now).text).toBe("$(flame) fit · H100 · 5 min ago");
  });

  it("says that the text has changed, and that a baseline is compared with", () => {
    const shown = statusWords("ready", status({ baseline: shownTrace({ path: "/w/old" }) }), { edited: true }, now);
    expect(shown.text).toBe("$(flame) fit · H100 · 5 min ago $(edit) text changed since $(diff)");
    expect(shown.tooltip).toContain("compared with /w/old");
  });

  it("makes no icon of a name in a trace", () => {
    const shown = statusWords("ready", status({ trace: shownTrace({ device: "$(trash)", recordedAt: "" }) }), { edited: false }, now);
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

  it.each([
    [{ steps: 3, firstStep: 2, lastStep: 4 }, "steps 2–4"],
    [{ steps: 1, firstStep: 7, lastStep: 7 }, "step 7"],
    [{ steps: 3, firstStep: null, lastStep: null }, "3 steps"],
    [{ steps: 0, firstStep: null, lastStep: null }, "the whole recording"],
  ])("words %j as %s", (trace, words) => expect(stepWords(trace)).toBe(words));
});

describe("the notice of a new trace", () => {
  it("names the hottest line as it stands now", () => {
    expect(noticeWords(shownTrace(), hotLine({ currentLine: 44 }))).toBe("fit, steps 2–4: model.py:44 took 38 % of the device time");
  });

  it("says when there was no device", () => {
    expect(noticeWords(shownTrace({ metric: "cpu_self", stage: "" }), hotLine())).toBe(
      "steps 2–4: model.py:42 took 38 % of the operators' CPU time (no device in this trace)",
    );
  });

  it("says when no line took time", () => {
    expect(noticeWords(shownTrace(), undefined)).toContain("no line of your code");
  });
});

it("names in messages are no links, whatever they look like", () => {
  expect(unlinked("[run](command:x) [a](https://b)")).toBe("[run]\u200b(command:x) [a]\u200b(https://b)");
});
