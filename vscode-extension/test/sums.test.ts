import { describe, expect, it } from "vitest";
import { duration, share, sumWords } from "../src/pages/words";
import cases from "./durations.json";

describe("sums of boxes", () => {
  it.each(cases.durations as [number, string][])("of %d ns are worded as the server words them: %s", (ns, words) => expect(duration(ns)).toBe(words));

  it.each(cases.shares as [number, string][])("have a share of %d: %s", (ratio, words) => expect(share(ratio)).toBe(words));

  it("are said with their share of the whole", () => {
    expect([sumWords(30_100_000, 33_000_000), sumWords(0, 0)]).toEqual(["30.1 ms, 91 %", "0, 0 %"]);
  });
});
