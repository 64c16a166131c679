import { describe, expect, it } from "vitest";
import type { Flame } from "../src/pages/contract";
import { boxColour, boxesOf, change, changeColour, kindColour, KINDS, leadsTo, type Box } from "../src/pages/flame/boxes";

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
  sums: "",
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

  it("lead to their own place, parts without one to that of the line whose work they are", () => {
    const [none, line] = boxesOf(flame).children as [Box, Box];
    const [kernel] = line.children as [Box];
    expect([leadsTo([line]), leadsTo([kernel, line]), leadsTo([kernel, none])]).toEqual([line, line, undefined]);
    const module: Box = { ...kernel, kind: "module", file: "/env/layers.py", line: 30 };
    expect([leadsTo([module, line]), leadsTo([kernel, module, line])]).toEqual([module, line]);
  });

  it("have a colour for each kind, the deeper the more of the time is a box's own", () => {
    expect(new Set(KINDS.map((kind) => kindColour(kind))).size).toBe(KINDS.length);
    for (const kind of KINDS) {
      expect(kindColour(kind, 1) === kindColour(kind)).toBe(kind === "other");
    }
    const [none, line] = boxesOf(flame).children as [Box, Box];
    const [kernel] = line.children as [Box];
    // All of the line's 40 is its own: what is below it is no line.
    expect([line, kernel, none].map((box) => boxColour(box, 50))).toEqual([kindColour("line", 1), kindColour("kernel", 1), kindColour("other")]);
    const caller: Box = { ...line, children: line.children.map((child) => ({ ...child, kind: "line", value: 40 })) };
    expect(boxColour(caller, 50)).toBe(kindColour("line", 0));
  });
});
