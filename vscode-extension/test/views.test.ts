import { describe, expect, it } from "vitest";
import { barWidth, levelOf, markWidth } from "../src/heat/levels";
import type { HotLine } from "../src/server/contract";
import { DEPTH_WORDS, DEPTHS, keptDepth } from "../src/depths";
import { describedPath, iconOf, opensPart, pathRows, pathParagraphs, type PathRow } from "../src/views/callPathRows";
import { copyText, describedRow, lineRows, moduleRows, pathTo, spokenRow, vanishedRows, wholeRow, type RowOptions } from "../src/views/hotLinesRows";
import { chosenBy, readingWords, runRows, tracesIn } from "../src/views/runRows";
import { amount, hotGroup, hotLine, hotLines, linePath, listedTrace, partPath, run } from "./examples";

const options: RowOptions = { by: "line", metric: "cost", hidden: new Set() };

describe("hot lines", () => {
  const lines = [
    hotLine({ line: 1, currentLine: 3, function: "f", amounts: { cost: amount(0.2, "10 µs"), wait: amount(0.9, "3 µs") } }),
    hotLine({ line: 2, currentLine: null, function: "g", amounts: { cost: amount(0.5, "20 µs"), wait: amount(0.1, "333 ns"), memory: amount(1, "1 MiB") } }),
    hotLine({ line: 3, function: "f", amounts: { cost: amount(0.1, "5 µs") } }),
    hotLine({ line: 9, function: "h", file: "/q/data.py", shortFile: "lib/data.py", amounts: { cpu: amount(1, "2 ns") } }),
  ];
  const answer = hotLines({
    lines,
    functions: [
      hotGroup("f", "/p/model.py", { cost: amount(0.3, "15 µs") }),
      hotGroup("g", "/p/model.py", { cost: amount(0.5, "20 µs") }),
      hotGroup("h", "/q/data.py", { cpu: amount(1, "2 ns") }),
    ],
    files: [hotGroup("", "/p/model.py", { cost: amount(0.8, "35 µs") }), hotGroup("", "/q/data.py", { cpu: amount(1, "2 ns") })],
  });
  const rowsOf = (...of: HotLine[]) => lineRows(hotLines({ lines: of }), options);

  it("stand by their share, as they stand now", () => {
    const rows = lineRows(answer, options);
    expect(rows.map((row) => row.name)).toEqual(["model.py:2", "model.py:3", "model.py:42"]);
  });

  it("say share, time, place and text in this order, so that a narrow side bar cuts the least", () => {
    const [row] = lineRows(answer, options);
    expect([row?.amount, row === undefined ? "" : describedRow(row)]).toEqual(["50 % · 20 µs", "model.py:2  y = self.layer(x)"]);
    const slower = hotLine({ line: 2, currentLine: 2, changeWords: "+4.00 µs" });
    expect(rowsOf(slower).map(describedRow)).toEqual(["model.py:2  +4.00 µs  y = self.layer(x)"]);
  });

  it("have the whole name, which VS Code cuts where there is no room", () => {
    const [row] = rowsOf(hotLine({ file: "/p/train_transformer.py", line: 1234, currentLine: 1234 }));
    expect(row === undefined ? "" : describedRow(row)).toMatch(/^train_transformer\.py:1234 {2}/);
  });

  it("are struck out where the line is deleted, and not found at the line that took its place", () => {
    const rows = rowsOf(hotLine({ file: "/p/a.py", line: 4, currentLine: 3, standing: "gone" }));
    expect(rows.map(describedRow)).toEqual([`${Array.from("a.py:3", (letter) => `${letter}\u0336`).join("")}  y = self.layer(x)`]);
    expect(rows.map(spokenRow)).toEqual(["a.py:3, 38 % · 12.4 ms, deleted"]);
    expect(rows.map(wholeRow)[0]).toContain("a.py:3");
    expect(pathTo(rows, hotLine().uri ?? "", 3)).toEqual([]);
    expect(rowsOf(hotLine({ standing: "edited" })).map(describedRow)).toEqual(["model.py:42  y = self.layer(x)"]);
  });

  it("are found by the line that the cursor is on, in the group that they stand in", () => {
    const uri = lines[0]?.uri ?? "";
    expect(pathTo(lineRows(answer, options), uri, 3).map(({ name }) => name)).toEqual(["model.py:3"]);
    expect(pathTo(lineRows(answer, { ...options, by: "function" }), uri, 3).map(({ name }) => name)).toEqual(["f", "model.py:3"]);
    expect([pathTo(lineRows(answer, options), uri, 77), pathTo(lineRows(answer, options), "file:///other.py", 3)]).toEqual([[], []]);
  });

  it("name a notebook's cell by the notebook", () => {
    const cell = hotLine({ file: "/tmp/ipykernel_7/2392314062.py", uri: "vscode-notebook-cell:/w/my%20train.ipynb#W1sZmlsZQ", line: 2, currentLine: 4 });
    expect(rowsOf(cell)[0]?.name).toBe("my train.ipynb:4");
  });

  it("say what has changed since the baseline, and what is gone", () => {
    const change = (changeWords: string): string | undefined => rowsOf(hotLine({ changeWords }))[0]?.change;
    expect(["", "-2.00 µs", "new"].map(change)).toEqual(["", "-2.00 µs", "new"]);
    expect(lineRows(hotLines({ lines: [hotLine({ changeWords: "new", amounts: { cpu: amount(1, "2 ns") } })] }), { ...options, metric: "cpu" })[0]?.change).toBe("");
    const vanished = [1, 2].map((line) => ({ ...hotLine({ line, currentLine: line + 100, changeWords: "-1.50 ms" }), timeWords: "" }));
    const gone = hotLines({ vanished, vanishedWords: "-3.00 ms" });
    const [row] = vanishedRows(gone, new Set());
    expect([row?.amount, row?.name, row?.children.map((one) => [one.amount, one.name])]).toEqual([
      "-3.00 ms",
      "2 lines no longer hot",
      [["-1.50 ms", "model.py:101"], ["-1.50 ms", "model.py:102"]],
    ]);
    expect(vanishedRows(hotLines({}), new Set())).toEqual([]);
    expect(vanishedRows(gone, new Set(row?.children.map(({ id }) => id)))).toEqual([]);
  });

  it("are sorted by another number, with shares of its sum", () => {
    const rows = lineRows(answer, { ...options, metric: "wait" });
    expect(rows.map((row) => [row.line?.line, row.share])).toEqual([[1, 0.9], [2, 0.1]]);
    expect(lineRows(answer, { ...options, metric: "memory" })[0]?.amount).toBe("100 % · 1 MiB");
  });

  it("are grouped by function and by file", () => {
    const functions = lineRows(answer, { ...options, by: "function" });
    expect(functions.map((row) => [row.name, row.amount, row.children.length])).toEqual([["g", "50 % · 20 µs", 1], ["f", "30 % · 15 µs", 2]]);
    const files = lineRows(answer, { ...options, by: "file" });
    expect(files.map((row) => [row.name, row.amount, row.children.length])).toEqual([["model.py", "80 % · 35 µs", 3]]);
    expect(lineRows(answer, { ...options, by: "file", metric: "cpu" }).map((row) => row.name)).toEqual(["data.py"]);
  });

  it("that are hidden are left out, and a group with them", () => {
    const hidden = new Set(["line:/p/model.py:2", "function:/p/model.py:f"]);
    expect(lineRows(answer, { ...options, by: "function", hidden })).toEqual([]);
  });

  it("are copied with place and numbers", () => {
    const row = lineRows(answer, options)[0];
    expect(row === undefined ? "" : copyText(row)).toBe("/p/model.py:2\n50 % · 20 µs  y = self.layer(x)");
  });

  it("of modules are named by path, else by class", () => {
    const module = { className: "Linear", label: "9.00 µs · 40 %, own 1.00 µs", share: 0.4, ownWords: "own 1.00 µs", numbers: {} };
    const of = (path: string, share: number) => ({ ...module, path, amounts: { device: amount(share, "9.00 µs") } });
    const rows = moduleRows([of("", 0.1), of("encoder.0", 0.4)], options);
    expect(rows.map((row) => [row.amount, describedRow(row)])).toEqual([
      ["40 % · 9.00 µs", "encoder.0  Linear, own 1.00 µs"],
      ["10 % · 9.00 µs", "Linear  own 1.00 µs"],
    ]);
  });
});

describe("call paths", () => {
  it("have ids of their own, which are the same when they are asked for again", () => {
    const paths = [linePath("a", 2, 60, [linePath("main", 1, 60)]), linePath("b", 3, 40, [linePath("main", 1, 40)])];
    const idsOf = (rows: readonly PathRow[]): string[] => rows.flatMap((row) => [row.id, ...idsOf(row.children)]);
    const ids = [...idsOf(pathRows(paths, "callers")), ...idsOf(pathRows(paths, "callees"))];
    expect(new Set(ids).size).toBe(8);
    expect(idsOf(pathRows(paths, "callers"))).toEqual(ids.slice(0, 4));
    const parts = pathRows([partPath("kernel", "gemm", 3), partPath("operator", "gemm", 2), partPath("kernel", "gemm", 1)], "callees");
    expect(new Set(idsOf(parts)).size).toBe(3);
  });

  const module = { ...partPath("module", "mlp", 60, [partPath("operator", "aten::mm", 50, [partPath("kernel", "gemm", 50)])]), wholeName: "h.0.mlp" };
  const here = { ...module, file: "/env/pack/layers.py", line: 30, uri: "file:///env/pack/layers.py", currentLine: 31 };
  const owner = { file: "/p/model.py", line: 7 };

  it("lead from a part to its own file where that is here, else to the line whose work it is", () => {
    const [row] = pathRows([here], "callees", owner);
    const below = row?.children[0];
    expect([row?.opens, below?.opens, below?.children[0]?.opens]).toEqual([{ file: here.file, line: 30 }, owner, owner]);
    expect(row !== undefined && below !== undefined ? [opensPart(row), opensPart(below)] : []).toEqual([true, false]);
    expect(pathRows([{ ...here, uri: null }], "callees", owner)[0]?.opens).toEqual(owner);
    const [called] = pathRows([linePath("f", 9, 60, [here, module])], "callees", owner);
    expect(called?.children.map(({ opens }) => opens)).toEqual([{ file: here.file, line: 30 }, { file: "/p/model.py", line: 9 }]);
    expect(called !== undefined && opensPart(called)).toBe(false);
    expect(pathRows([partPath("operator", "aten::mm", 1)], "callers")[0]?.opens).toBeUndefined();
  });

  it("are unfolded along most of the time, and where they lead to lines alone", () => {
    const small = partPath("module", "small", 5, [partPath("operator", "aten::add", 5)]);
    const lines = [linePath("f", 1, 3, [linePath("g", 2, 3)]), linePath("h", 3, 2, [linePath("g", 2, 1), small])];
    expect(pathRows([here, small, ...lines], "callees").map(({ isOpen }) => isOpen)).toEqual([true, false, true, false]);
  });

  it("say what a part is, how much of it is backward, and how often it ran", () => {
    const [row] = pathRows([{ ...here, detailWords: "backward 20 ns, 12 calls" }], "callees", owner);
    const kernel = pathRows([partPath("kernel", "gemm", 50)], "callees", owner)[0];
    expect(row === undefined ? [] : [describedPath(row), iconOf(row), ...pathParagraphs(row, "per step")]).toEqual([
      "60 ns  layers.py:31",
      "symbol-class",
      "module h.0.mlp — /env/pack/layers.py:31",
      "60 ns per step: backward 20 ns, 12 calls",
    ]);
    expect(kernel === undefined ? [] : [describedPath(kernel), ...pathParagraphs(kernel, "per step")]).toEqual(["50 ns", "kernel gemm", "50 ns per step"]);
    const line = pathRows([linePath("f", 9, 60)], "callees")[0];
    expect(line === undefined ? [] : pathParagraphs(line, "per step")).toEqual(["f — /p/model.py:109", "60 ns per step"]);
  });

  it("keep the depth that was chosen, and take no other word for one", () => {
    expect(["module", "kernel", undefined, "deep", 3].map((kept) => keptDepth(kept, "line"))).toEqual(["module", "kernel", "line", "line", "line"]);
    expect(DEPTHS.map((depth) => DEPTH_WORDS[depth])).toEqual(["Lines", "Modules", "Library lines", "Operators", "Kernels"]);
  });
});

describe("runs", () => {
  const rank3 = "/w/runs/b/x.rank3.1795185182862936653.pt.trace.json";

  it("are named by the experiment's folder, program, step and time, the newest first; a run of one trace is one row", () => {
    const trace = listedTrace({ program: "tools/train.py", stage: "fit", stepTimeWords: "2.79 s a step", device: "NVIDIA H100 80GB HBM3" });
    const lone = run({ program: "tools/train.py", stepTimeWords: "2.79 s a step", traces: [trace] });
    const members = [2.1e12, 2e12].map((recordedNs, place) =>
      listedTrace({ path: `${rank3}${1 - place}`, recordedNs, run: "b", stage: "fit", rank: 1 - place, selected: true, program: "ddp.py" }),
    );
    const ranks = run({ id: "b", recordedNs: 2.1e12, program: "ddp.py", ranks: 2, selected: true, traces: members });
    const rows = runRows([ranks, lone], ["/w"], 3e6);
    expect(rows.map((row) => [row.kind, row.label, row.description])).toEqual([
      ["run", "b", "ddp.py · 15 min ago · 2 ranks"],
      ["trace", "a", "train.py · 2.79 s a step · 33 min ago · H100 · fit · 1 MiB"],
    ]);
    expect(tracesIn(rows).map((row) => row.label)).toEqual(["fit · rank 1", "fit · rank 0", "a"]);
    expect(rows.map((row) => row.kind === "run" && row.isSelected)).toEqual([true, false]);
    expect(rows.map(chosenBy)).toEqual([{ path: `${rank3}1`, run: true }, { path: trace.path }]);
  });

  it.each([
    ["/w/lightning_logs/version_3/t.pt.trace.json", ["/w"], "version_3"],
    ["/w/deepscope_logs/t.pt.trace.json", ["/w"], "deepscope_logs"],
    ["/w/out/big model/t.pt.trace.json", ["/w"], "out/big model"],
    ["/w/t.pt.trace.json", ["/w"], "w"],
    ["/far/away/t.pt.trace.json", ["/w"], "/far/away"],
    ["/v/runs/x/t.pt.trace.json", ["/w", "/v"], "v/x"],
    ["C:\\w\\runs\\x\\t.pt.trace.json", ["C:\\w"], "x"],
  ])("at %s in %j begin with %s", (path, folders, label) => {
    expect(runRows([run({ traces: [listedTrace({ path })] })], folders, 3e6).map((row) => row.label)).toEqual([label]);
  });

  it("that cannot be read are marked, and so are those of which a part cannot", () => {
    const broken = listedTrace({ problem: "ends in the middle of event 7" });
    const rows = runRows([run({ traces: [broken] }), run({ id: "b", traces: [listedTrace(), broken] })], ["/w"], 3e6);
    expect(rows.map(({ description }) => description.split(" · ")[0])).toEqual(["cannot be read", "1 of 2 cannot be read"]);
    expect(tracesIn(rows).map(({ problem }) => problem)).toEqual(["ends in the middle of event 7", "", "ends in the middle of event 7"]);
  });

  it("are said to be read, by their number or name", () => {
    expect(readingWords("12 of 56: /w/3 of 4: x.json")).toBe("Reading 12 of 56 …");
    expect(readingWords("/w/runs/x.pt.trace.json")).toBe("Reading x.pt.trace.json …");
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
