import { describe, expect, it } from "vitest";
import { withAddress } from "../src/pages/source/http";

describe("TensorBoard's address", () => {
  const ours = "#/operators?run=8ca7&step=2";

  it("holds that of our page", () => {
    expect(withAddress("#deepscope", ours)).toBe("#deepscope&p.deepscope.at=%23%2Foperators%3Frun%3D8ca7%26step%3D2");
    expect(withAddress("", ours)).toBe(withAddress("#deepscope", ours));
  });

  it("holds the newest one alone, and leaves the words of others", () => {
    const before = withAddress("#deepscope&p.other.at=1&tagFilter=a", "#/lines");
    const words = new URLSearchParams(withAddress(before, ours).slice(1));
    expect([...words]).toEqual([["deepscope", ""], ["p.other.at", "1"], ["tagFilter", "a"], ["p.deepscope.at", ours]]);
  });
});
