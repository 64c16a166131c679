import { describe, expect, it } from "vitest";
import { age, bar, duration, share, size } from "../src/units";

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

  it("make bars as wide as the share, of which something is always seen", () => {
    expect(bar(0.5, 6)).toBe("███");
    expect(bar(1 / 16, 2)).toBe("▏");
    expect(bar(0.0001, 6)).toBe("▏");
    expect(bar(0, 6)).toBe("");
    expect(bar(7, 2)).toBe("██");
  });
});
