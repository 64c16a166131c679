import { describe, expect, it } from "vitest";
import { age } from "../src/age";

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
