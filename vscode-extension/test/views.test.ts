import { describe, expect, it } from "vitest";
import { barWidth, levelOf, markWidth } from "../src/heat/levels";
import { callPathRows } from "../src/views/callPathRows";
import { copyText, describedRow, lineRows, moduleRows, vanishedRows, wholeRow, type RowOptions } from "../src/views/hotLinesRows";
import { chosenBy, nameFacts, parentOf, runRows, tracesIn } from "../src/views/runRows";
import { callPath, hotLine, listedTrace } from "./examples";

const options: RowOptions = { by: "line", metric: "device", divisor: 3, hidden: new Set() };

describe("hot lines", () => {
  const lines = [
    hotLine({ line: 1, currentLine: 3, share: 0.2, function: "f", numbers: { self_device_ns: 30_000, wait_ns: 9_000 } }),
    hotLine({ line: 2, currentLine: null, share: 0.5, function: "g", numbers: { self_device_ns: 60_000, wait_ns: 1_000, bytes_allocated: 3 * 2 ** 20 } }),
    hotLine({ line: 3, share: 0.1, function: "f", numbers: { self_device_ns: 15_000 } }),
    hotLine({ line: 9, share: 0, function: "h", file: "/q/data.py", shortFile: "lib/data.py", numbers: { self_cpu_ns: 5 } }),
  ];

  it("stand by their share, as they stand now, for one step", () => {
    const rows = lineRows(lines, options);
    expect(rows.map((row) => row.name)).toEqual(["model.py:2", "model.py:3", "model.py:42"]);
  });

  it("say share, time, place and text in this order, so that a narrow side bar cuts the least", () => {
    const [row] = lineRows(lines, options);
    expect([row?.amount, row === undefined ? "" : describedRow(row)]).toEqual(["50 % · 20.0 µs", "model.py:2  y = self.layer(x)"]);
    const slower = hotLine({ line: 2, currentLine: 2, share: 0.5, perStepNs: 20_000, baselineNs: 16_000, numbers: { self_device_ns: 60_000 } });
    expect(lineRows([slower], options).map(describedRow)).toEqual(["model.py:2  +4.00 µs  y = self.layer(x)"]);
  });

  it("leave out the middle of a file's long name, and never its line", () => {
    const row = (file: string): string => lineRows([hotLine({ file, line: 1234, currentLine: 1234 })], options).map(describedRow)[0] ?? "";
    expect(row("/p/train_transformer.py")).toMatch(/^train_…er\.py:1234 {2}/);
    expect(row("/p/transformer.py")).toMatch(/^transf…er\.py:1234 {2}/);
    expect(row("/p/data_sets.py")).toMatch(/^data_sets\.py:1234 {2}/);
    expect(lineRows([hotLine({ file: "/p/train_transformer.py", line: 7, currentLine: 7 })], options).map(wholeRow)[0]).toContain("train_transformer.py:7");
  });

  it("name a notebook's cell by the notebook", () => {
    const cell = hotLine({ file: "/tmp/ipykernel_7/2392314062.py", uri: "vscode-notebook-cell:/w/my%20train.ipynb#W1sZmlsZQ", line: 2, currentLine: 4 });
    expect(lineRows([cell], options)[0]?.name).toBe("my train.ipynb:4");
  });

  it("say what has changed since the baseline, if it is worth a word, and what is gone", () => {
    const measured = { share: 0.5, perStepNs: 10_000, numbers: { self_device_ns: 30_000 } };
    const change = (baselineNs: number | null): string | undefined => lineRows([hotLine({ ...measured, baselineNs })], options)[0]?.change;
    expect([null, 12_000, 9_990, 0].map(change)).toEqual(["", "-2.00 µs", "", "new"]);
    const gone = [1, 2].map((line) => ({ ...hotLine({ line, currentLine: line + 100, perStepNs: 1_500_000 }), share: 0.1 }));
    const [row] = vanishedRows(gone, new Set());
    expect([row?.amount, row?.name, row?.children.map((one) => [one.amount, one.name])]).toEqual([
      "-3.00 ms",
      "2 lines no longer hot",
      [["-1.50 ms", "model.py:101"], ["-1.50 ms", "model.py:102"]],
    ]);
    expect(vanishedRows([], new Set())).toEqual([]);
  });

  it("are sorted by another number, with shares of its sum", () => {
    const rows = lineRows(lines, { ...options, metric: "wait" });
    expect(rows.map((row) => [row.line?.line, row.share])).toEqual([[1, 0.9], [2, 0.1]]);
    expect(lineRows(lines, { ...options, metric: "memory" })[0]?.amount).toBe("100 % · 1.00 MiB");
  });

  it("are grouped by function and by file; parts sum to the whole", () => {
    const functions = lineRows(lines, { ...options, by: "function" });
    expect(functions.map((row) => [row.name, row.children.length])).toEqual([["g", 1], ["f", 2]]);
    expect(functions[1]?.share).toBeCloseTo(0.3);
    const files = lineRows(lines, { ...options, by: "file" });
    expect(files.map((row) => row.name)).toEqual(["model.py"]);
    expect(files[0]?.share).toBeCloseTo(0.8);
  });

  it("that are hidden are left out, and a group with them", () => {
    const hidden = new Set(["line:/p/model.py:2", "function:/p/model.py:f"]);
    expect(lineRows(lines, { ...options, by: "function", hidden })).toEqual([]);
  });

  it("are copied with place and numbers", () => {
    const row = lineRows(lines, options)[0];
    expect(row === undefined ? "" : copyText(row)).toBe("/p/model.py:2\n50 % · 20.0 µs  y = self.layer(x)");
  });

  it("of modules are named by path, else by class", () => {
    const module = { className: "Linear", label: "9.00 µs · 40 %, own 1.00 µs", share: 0.4, numbers: { self_device_ns: 3_000, total_device_ns: 27_000 } };
    const rows = moduleRows([{ ...module, path: "encoder.0" }, { ...module, path: "", share: 0.1 }], options);
    expect(rows.map((row) => [row.amount, describedRow(row)])).toEqual([
      ["40 % · 9.00 µs", "encoder.0  Linear, own 1.00 µs"],
      ["10 % · 9.00 µs", "Linear  own 1.00 µs"],
    ]);
  });
});

describe("call paths", () => {
  const leaf = (ns: number) => callPath("leaf", 9, ns);
  const hot = (ns: number) => callPath("hot", 5, ns, [leaf(ns / 2)]);
  const roots = [callPath("main", 1, 100, [callPath("a", 2, 60, [hot(60)]), callPath("b", 3, 40, [hot(40)])])];

  it("join the chains above a line and the trees below it", () => {
    const rows = callPathRows(roots, { file: "/p/model.py", line: 5 });
    expect(rows.callers.map((row) => [row.path.function, row.ns])).toEqual([["a", 60], ["b", 40]]);
    expect(rows.callers[0]?.children.map((row) => [row.path.function, row.ns])).toEqual([["main", 60]]);
    expect(rows.callees.map((row) => [row.path.function, row.ns])).toEqual([["leaf", 50]]);
  });

  it("find a line as it was recorded, wherever it stands now, and say where that is", () => {
    expect(callPathRows(roots, { file: "/p/model.py", line: 5 }).line?.currentLine).toBe(105);
    expect(callPathRows(roots, { file: "/p/model.py", line: 105 })).toEqual({ line: undefined, callers: [], callees: [] });
  });

  it("count recursion once", () => {
    const recursive = [callPath("main", 1, 100, [callPath("hot", 5, 100, [callPath("hot", 5, 80)])])];
    const rows = callPathRows(recursive, { file: "/p/model.py", line: 5 });
    expect(rows.callers.map((row) => row.ns)).toEqual([100]);
    expect(rows.callees.map((row) => row.ns)).toEqual([80]);
  });

  it("have ids of their own", () => {
    const rows = callPathRows(roots, { file: "/p/model.py", line: 5 });
    const ids = rows.callers.flatMap((row) => [row.id, ...row.children.map((child) => child.id)]);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe("runs", () => {
  const rank3 = "/w/runs/b/x.rank3.1795185182862936653.pt.trace.json";

  it("are named by program, step and time, the newest first; a run of one trace is one row", () => {
    const lone = listedTrace({ recordedNs: 1e12, run: "a", program: "tools/train.py", stepNs: 2_790_000_000, device: "NVIDIA H100 80GB HBM3" });
    const ranks = [2e12, 2.1e12].map((recordedNs, rank) => listedTrace({ path: `${rank3}${rank}`, recordedNs, run: "b", rank, selected: true, program: "ddp.py" }));
    const rows = runRows([lone, ...ranks], ["/w"], 3e6);
    expect(rows.map((row) => [row.kind, row.label, row.description])).toEqual([
      ["run", "ddp.py", "15 min ago · 2 ranks"],
      ["trace", "train.py", "2.79 s a step · 33 min ago · H100 · fit · 1.00 MiB"],
    ]);
    expect(tracesIn(rows).map((row) => row.label)).toEqual(["fit · rank 1", "fit · rank 0", "train.py"]);
    expect(rows.map((row) => row.kind === "run" && row.isSelected)).toEqual([true, false]);
    expect(rows.map(chosenBy)).toEqual([{ path: `${rank3}1`, run: true }, { path: lone.path }]);
  });

  it("have the step time of their training, whatever was recorded after it", () => {
    const stages = ["validate", "fit", "test"].map((stage, index) =>
      listedTrace({ path: `${rank3}${stage}`, recordedNs: 1e12 - index, run: "b", stage, stepNs: stage === "fit" ? 2_790_000_000 : 5_000 }),
    );
    expect(runRows(stages, ["/w"], 3e6).map((row) => row.description)).toEqual(["2.79 s a step · 33 min ago"]);
    const windows = [[1e12, 0, 4e9], [1e12, 1, 2e9], [9e11, 0, 7e9]].map(([recordedNs = 0, rank = 0, stepNs = 0], index) =>
      listedTrace({ path: `${rank3}${index}`, recordedNs, run: "b", rank, stage: "fit", stepNs }),
    );
    expect(runRows(windows, ["/w"], 3e6).map((row) => row.description)).toEqual(["3.00 s a step · 33 min ago · 2 ranks"]);
  });

  it("have the name of their folder where the traces do not say what ran", () => {
    const rows = runRows([listedTrace(), listedTrace({ path: rank3, name: rank3 })], ["/w"], 3e6);
    expect(rows.map((row) => row.label)).toEqual(["runs/a", "runs/b"]);
  });

  it("read stage and rank from a name", () => {
    expect(nameFacts("w.validate.rank12.1795185182862936653.pt.trace.json.gz")).toEqual({ stage: "validate", rank: 12 });
    expect(nameFacts("any.pt.trace.json")).toEqual({ stage: "", rank: null });
  });

  it("know the folder of a path of any system", () => {
    expect(parentOf("/a/b.json")).toBe("/a");
    expect(parentOf("C:\\a\\b.json")).toBe("C:\\a");
  });
});

describe("heat", () => {
  it("has three levels, told apart by width too", () => {
    expect([0.01, 0.05, 0.2, 1].map(levelOf)).toEqual([1, 2, 3, 3]);
    expect(([1, 2, 3] as const).map(markWidth)).toEqual([2, 3, 4]);
  });

  it("has bars as wide as the share, never invisible", () => {
    expect([0.5, 1, 3, 0.001].map(barWidth)).toEqual([60, 120, 120, 2]);
  });
});
