import { describe, expect, it } from "vitest";
import { duration, share, sumWords, visible } from "../src/pages/words";
import cases from "./durations.json";

describe("names of a trace", () => {
  it("do not steer what stands around them", () => {
    expect(visible("a/ü b/😀.py:1")).toBe("a/ü b/😀.py:1");
    expect(visible("\u202egnp.exe\u001b[2J\u200b\u2028\ud800")).toBe("\\u{202e}gnp.exe\\u{1b}[2J\\u{200b}\\u{2028}\\u{d800}");
  });
});

describe("sums of boxes", () => {
  it.each(cases.durations as [number, string][])("of %d ns are worded as the server words them: %s", (ns, words) => expect(duration(ns)).toBe(words));

  it.each(cases.shares as [number, string][])("have a share of %d: %s", (ratio, words) => expect(share(ratio)).toBe(words));

  it("are said with their share of the whole", () => {
    expect([sumWords(30_100_000, 33_000_000), sumWords(0, 0)]).toEqual(["30.1 ms, 91 %", "0, 0 %"]);
  });
});
