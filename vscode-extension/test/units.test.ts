import { describe, expect, it } from "vitest";
import { age, difference, duration, durationChange, share, size } from "../src/units";

describe("numbers in words", () => {
  it.each([
    [0, "0"],
    [999, "999 ns"],
    [1_000, "1.00 µs"],
    [12_345_678, "12.3 ms"],
    [138_000_000, "138 ms"],
    [999_900_000, "1.00 s"],
    [4_200_000_000_000, "4200 s"],
    [-1_500, "-1.50 µs"],
  ])("%d ns is %s", (ns, words) => expect(duration(ns)).toBe(words));

  it.each([
    [512, "512 B"],
    [1.5 * 2 ** 20, "1.50 MiB"],
    [80 * 2 ** 30, "80.0 GiB"],
  ])("%d bytes are %s", (bytes, words) => expect(size(bytes)).toBe(words));

  it.each([
    [0, "0 %"],
    [0.0001, "<0.1 %"],
    [0.042, "4.2 %"],
    [0.0996, "10 %"],
    [0.38, "38 %"],
  ])("a ratio of %d is %s", (ratio, words) => expect(share(ratio)).toBe(words));

  it.each([
    [0, "just now"],
    [59_999, "just now"],
    [5 * 60_000, "5 min ago"],
    [3 * 3_600_000, "3 h ago"],
    [86_400_000, "1 day ago"],
    [3 * 86_400_000, "3 days ago"],
  ])("%d ms ago is %s", (ms, words) => expect(age(1_000, 1_000 + ms)).toBe(words));

  it("say nothing of a time that is not known", () => expect(age(Number.NaN, 0)).toBe(""));

  it("say how a time has changed, the unit once where it is the same", () => {
    expect(durationChange(2.95e9, 2.79e9)).toBe("2.95 → 2.79 s");
    expect(durationChange(1.2e9, 790e6)).toBe("1.20 s → 790 ms");
    expect([3.1e6, -120e6].map(difference)).toEqual(["+3.10 ms", "-120 ms"]);
  });
});
