import { describe, expect, it } from "vitest";
import { baselinesOf, foundRuns, titleOf } from "../src/pages/app/runs";
import { changesOf, scaleOf, withoutNoise } from "../src/pages/compare/DivergingBars";
import type { Column, Compared, Run, Table } from "../src/pages/contract";
import { aboveWords, blocksOf, heatOf, levelOf, slowestFirst } from "../src/pages/distributed/HeatMap";
import { absolute, relative, stackOf } from "../src/pages/memory/DeviceMemory";
import { incrementsWithin, placeOf } from "../src/pages/parts/chartScale";
import { valueWords } from "../src/pages/words";
import { stepsWords } from "../src/pages/steps/StepsPage";

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

describe("a counter", () => {
  it("has the units of the terminal", () => {
    expect(valueWords(38_692_454, "bytesPerSecond")).toBe("36.9 MiB/s");
    expect(valueWords(0, "bytesPerSecond")).toBe("0 B/s");
    expect(valueWords(5 * 1024 ** 3, "bytes")).toBe("5.00 GiB");
    expect(valueWords(186.4, "perSecond")).toBe("186/s");
    expect(valueWords(96.8129, "percent")).toBe("96.8 %");
    expect(valueWords(312, "watts")).toBe("312 W");
  });

  it("names the step of a value, and no step behind the last", () => {
    expect([2, 3.7, 4.99, 5, 5.001].map((at) => stepsWords({ steps: [2, 3, 4], end: 5 }, at))).toEqual(["step 2", "step 3", "step 4", "step 4", "step 4"]);
    expect([0, 8.2, 24].map((at) => stepsWords({ steps: [0, 8, 16], end: 24 }, at))).toEqual(["steps 0–7", "steps 8–15", "steps 16–23"]);
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
  return { id, title: id, name: "", folder: `/runs/${id}`, recordedAt: "", ranks: [], stages: [""], windows, traces: 1, sizeBytes: 1, problem: "" };
}

describe("a list of runs", () => {
  it("names each by its folder and finds it by any of its words", () => {
    const runs = [{ ...run("train.py"), name: "exp1/version_0" }, { ...run("train.py"), name: "exp2/version_0" }, run("other.py")];
    expect(runs.map(titleOf)).toEqual(["exp1/version_0 · train.py", "exp2/version_0 · train.py", "other.py"]);
    expect(foundRuns(runs, " TRAIN exp2 ")).toEqual([runs[1]]);
    expect(foundRuns(runs, "")).toEqual(runs);
    expect(foundRuns(runs, "/runs/other")).toEqual([runs[2]]);
  });
});

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

describe("ranks", () => {
  const ranks = { ranks: [0, 3, 5], ownNs: [10, 40, 10], hosts: ["a", ""], hostOf: [0, 1, 0] };

  it("stand with the slowest first", () => {
    expect(slowestFirst(ranks).map((place) => ranks.ranks[place])).toEqual([3, 0, 5]);
  });

  it("stand by host, and by eight where there is one host", () => {
    expect(blocksOf(ranks)).toEqual([
      { label: "a", places: [0, 2] },
      { label: "host unknown", places: [1] },
    ]);
    const one = { ranks: Array.from({ length: 17 }, (_, place) => place), hosts: ["a"], hostOf: Array.from({ length: 17 }, () => 0) };
    expect(blocksOf(one).map(({ label, places }) => [label, places.length])).toEqual([
      ["0–7", 8],
      ["8–15", 8],
      ["16", 1],
    ]);
  });

  it("are the darker the more they are above the median", () => {
    const levels = [5, 10, 25, 50];
    expect([94, 95, 100, 104, 105, 110, 125, 150, 999].map((own) => levelOf(own, 100, levels))).toEqual([-1, 0, 0, 0, 1, 2, 3, 4, 4]);
    expect(levelOf(5, 0, levels)).toBe(0);
    expect([aboveWords(138, 100), aboveWords(96, 100), aboveWords(100, 100), aboveWords(5, 0)]).toEqual(["+38 %", "−4 %", "0 %", ""]);
  });

  it("are warm where they are above the least, and cold where all are alike", () => {
    const column = (key: string, kind: Column["kind"]): Column => ({ key, title: key, kind, help: "", rank: 0 });
    const table: Table = {
      id: "ranks",
      title: "Ranks",
      columns: [column("rank", "text"), column("step_ns", "time"), column("own_ns", "time")],
      rows: [
        ["rank 0", 50, 10],
        ["rank 3", 50, 40],
      ],
      files: [],
      places: [],
      parents: [],
      keys: [],
      leftOut: 0,
    };
    const heat = heatOf(table);
    expect([heat.get("step_ns"), heat.get("own_ns"), heat.get("rank")]).toEqual([[0, 0], [0, 0.75], undefined]);
    const unknown = heatOf({ ...table, rows: [["rank 0", 50, null], ["rank 1", 50, 40], ["rank 2", null, 40]] });
    expect([unknown.get("step_ns"), unknown.get("own_ns")], "what is not known is no least").toEqual([[0, 0, 0], [0, 0, 0]]);
  });
});
