import { describe, expect, it } from "vitest";
import { baselinesOf } from "../src/pages/app/baselines";
import { changesOf, scaleOf, withoutNoise } from "../src/pages/compare/changes";
import type { Compared, RankRow, Run, Table } from "../src/pages/contract";
import { heatOf, rankTable, slowestFirst } from "../src/pages/distributed/heat";
import { absolute, relative, stackOf } from "../src/pages/memory/kinds";
import { incrementsWithin, placeOf } from "../src/pages/parts/chartScale";

describe("a chart", () => {
  it("finds the last event until a moment", () => {
    const at = [0, 10, 10, 25];
    expect([-5, 0, 9, 10, 24, 25, 1e9].map((moment) => placeOf(at, moment))).toEqual([0, 0, 0, 2, 2, 3, 3]);
    expect(placeOf([], 3)).toBe(-1);
  });

  it("marks bytes at powers of two and others at 1, 2 and 5", () => {
    expect(incrementsWithin(2).slice(0, 4)).toEqual([1, 2, 4, 8]);
    expect(incrementsWithin(10).slice(0, 5)).toEqual([1, 2, 5, 10, 20]);
  });
});

describe("moments on the trace's clock", () => {
  it("keep all digits", () => {
    const begin = "1717552534009500001";
    expect(absolute(begin, 3)).toBe("1717552534009500004");
    expect(relative(begin, absolute(begin, 123_456_789))).toBe(123_456_789);
  });

  it("give each kind its own colour", () => {
    const kinds = ["parameters", "gradients", "optimizer state", "inputs", "activations", "temporaries", "unknown"];
    const tones = stackOf(kinds.map((kind) => ({ kind, sizeBytes: 1 }))).map(({ tone }) => tone);
    expect(new Set(tones).size).toBe(kinds.length);
  });
});

function run(id: string, windows: number[] = []): Run {
  return { id, title: id, folder: "", recordedAt: "", ranks: [], stages: [""], windows, traces: 1, sizeBytes: 1 };
}

describe("baselines", () => {
  it("are the other runs, and other windows of each run that has several", () => {
    const runs = [run("a", [1, 2]), run("b"), run("c", [7])];
    const words = (chosen: string): string[] => baselinesOf(runs, chosen).map(([word]) => word);
    expect(words("a")).toEqual(["a~1", "b", "c"]);
    expect(words("a~1")).toEqual(["a~2", "b", "c"]);
    expect(words("b")).toEqual(["a~1", "a~2", "c"]);
    expect(baselinesOf([run("a")], "a")).toEqual([]);
  });
});

const TABLE: Table = {
  id: "changes_line",
  title: "",
  columns: ["name", "change_ns", "low_ns", "high_ns", "verdict"].map((key) => ({ key, title: key, kind: "time", help: "", rank: 0 })),
  rows: [
    ["a.py:1", -5, -7, -3, "faster"],
    ["a.py:2", 9, 2, 16, "slower"],
    ["b.py:3", 100, -300, 400, "within noise"],
  ],
  files: ["/a.py"],
  places: [
    [0, 1],
    [0, 2],
    [-1, 0],
  ],
  parents: [],
  keys: [],
  leftOut: 0,
};

describe("a comparison's bars", () => {
  it("are the rows by the size of the change, with their places", () => {
    expect(changesOf(TABLE).map(({ name, file, line, changeNs }) => [name, file, line, changeNs])).toEqual([
      ["b.py:3", "", 0, 100],
      ["a.py:2", "/a.py", 2, 9],
      ["a.py:1", "/a.py", 1, -5],
    ]);
  });

  it("leave out what is within noise", () => {
    const shown = withoutNoise({ rows: TABLE, beyondNoise: 2 } as Compared);
    expect(shown.rows.map(([name]) => name)).toEqual(["a.py:1", "a.py:2"]);
    expect(shown.places.length).toBe(2);
  });

  it("have nothing at one place of the scale, and stay on it", () => {
    const scale = scaleOf([-10, 30]);
    expect([scale(-10), scale(0), scale(30), scale(99)]).toEqual([0, 0.25, 1, 1]);
    expect(scaleOf([])(5)).toBe(1);
  });
});

function rank(number: number, more: Partial<RankRow>): RankRow {
  const zero = { steps: 1, stepNs: 0, ownNs: 0, computeNs: 0, communicationNs: 0, exposedNs: 0, idleNs: 0, dataNs: 0, syncNs: 0, peakBytes: 0 };
  return { rank: number, host: "", device: "", parts: [], waitedNs: null, last: null, ...zero, ...more };
}

describe("ranks by their numbers", () => {
  const ranks = [rank(0, { stepNs: 50, ownNs: 10, waitedNs: 8 }), rank(3, { stepNs: 50, ownNs: 40, waitedNs: 0 }), rank(5, { stepNs: 50, ownNs: 10 })];
  const table = rankTable(ranks.slice(0, 2));

  it("stand with the slowest first", () => {
    expect(slowestFirst(ranks).map((one) => one.rank)).toEqual([3, 0, 5]);
  });

  it("have the columns that say something", () => {
    expect(table.columns.map(({ key }) => key)).toEqual(["rank", "stepNs", "ownNs", "waitedNs"]);
    expect(table.rows).toEqual([
      ["rank 0", 50, 10, 8],
      ["rank 3", 50, 40, 0],
    ]);
  });

  it("are warm where they are above the least, and cold where all are alike", () => {
    const heat = heatOf(table);
    expect([heat.get("stepNs"), heat.get("ownNs"), heat.get("rank")]).toEqual([[0, 0], [0, 0.75], undefined]);
  });
});
