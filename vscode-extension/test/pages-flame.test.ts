import { describe, expect, it } from "vitest";
import type { Flame } from "../src/pages/contract";
import { boxesOf, change, changeColour } from "../src/pages/flame/boxes";

const flame: Flame = {
  metrics: ["device"],
  isDevice: true,
  frames: [
    { kind: "line", name: "main · train.py:5", file: "/train.py", line: 5, place: "train.py:5" },
    { kind: "kernel", name: "gemm", file: "", line: 0, place: "" },
    { kind: "line", name: "(no user line)", file: "", line: 0, place: "" },
  ],
  shown: [0, 1, 2, 1],
  parents: [-1, 0, -1, 2],
  own: [10, 30, 5, 0],
  before: [10, 60, 0, 7],
  wholeNs: 48,
  beforeNs: 77,
  goneNs: 7,
  baseline: "train.py",
  leftOut: 2,
  leftOutNs: 3,
  note: "",
};

describe("the flame graph's boxes", () => {
  it("sum up what is in them, and are not drawn without time", () => {
    const root = boxesOf(flame);
    expect([root.value, root.before]).toEqual([48, 77]);
    expect(root.children.map(({ name, value, self, before }) => [name, value, self, before])).toEqual([
      ["(no user line)", 5, 5, 7],
      ["main · train.py:5", 40, 10, 70],
    ]);
    expect(root.children[0]?.children).toEqual([]);
    expect(root.children[0]?.frame).toBe(-1);
  });

  it("are red where they became slower and blue where they became faster, by their part of the whole", () => {
    const root = { value: 100, before: 50 };
    expect(change({ value: 30, before: 10 }, root)).toBe(0.2);
    expect(changeColour(0)).toBe("rgb(242 242 242)");
    const [red = 0, , blue = 0] = (changeColour(0.2).match(/\d+/g) ?? []).map(Number);
    expect(red).toBeGreaterThan(blue);
    const [less = 0, , more = 0] = (changeColour(-0.2).match(/\d+/g) ?? []).map(Number);
    expect(more).toBeGreaterThan(less);
  });
});
