import { describe, expect, it } from "vitest";
import { editorCommand } from "../src/tensorboard/keys";
import { fromPage as boardFromPage, readEditorCommand, readFrameClick } from "../src/tensorboard/messages";
import { isLocalAbsolute } from "../src/tensorboard/paths";
import { boxColour, kindColour, KINDS } from "../src/flame/colours";
import { drawnTree, frameLabels, framesOf, rankIn } from "../src/flame/drawn";
import { fromPage, toPage, type DrawnNode } from "../src/flame/messages";
import { page } from "../src/page";
import { read, readOr } from "../src/shape";
import type { FlameGraph, FlameNode, Frame } from "../src/server/contract";

describe("a click on a frame in torch-tb-profiler", () => {
  it("counts lines from 0: line 0 is the first of the file", () => {
    expect(readFrameClick({ filename: "/p/model.py", line: 0 })).toEqual({ filename: "/p/model.py", line: 1 });
    expect(readFrameClick({ filename: "model.py", line: 41 })).toEqual({ filename: "model.py", line: 42 });
  });

  it.each([
    null,
    "text",
    {},
    { filename: "", line: 1 },
    { filename: "a.py", line: -1 },
    { filename: "a.py", line: 1.5 },
    { filename: "a.py", line: "1" },
    { filename: 5, line: 1 },
    { filename: "a\0.py", line: 1 },
    { filename: "x".repeat(5000), line: 1 },
    { filename: "a.py" },
  ])("is refused in another shape: %j", (message) => expect(readFrameClick(message)).toBeUndefined());

  it("reaches the extension in a shape of its own", () => {
    expect(readOr(boardFromPage, { type: "open", filename: "a.py", line: 1 })).toBeDefined();
    expect(readOr(boardFromPage, { type: "run", command: "x" })).toBeUndefined();
  });

  it.each([
    ["/home/me/a.py", true],
    ["C:\\a.py", true],
    ["C:/a.py", true],
    ["\\\\host\\share\\a.py", false],
    ["//host/share/a.py", false],
    ["a.py", false],
    ["../../etc/passwd", false],
  ])("may be looked for on this machine's disks: %s %s", (path, answer) => expect(isLocalAbsolute(path)).toBe(answer));
});

describe("a key pressed in TensorBoard", () => {
  const key = (key: string, ...held: readonly ("ctrlKey" | "metaKey" | "shiftKey" | "altKey")[]) =>
    editorCommand({ key, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, ...Object.fromEntries(held.map((name) => [name, true])) });

  it("opens the editor's commands or files, as in the editor", () => {
    const commands = [key("F1"), key("P", "ctrlKey", "shiftKey"), key("P", "metaKey", "shiftKey")];
    expect(new Set(commands)).toEqual(new Set(["workbench.action.showCommands"]));
    expect([key("p", "ctrlKey"), key("p", "metaKey")]).toEqual(["workbench.action.quickOpen", "workbench.action.quickOpen"]);
  });

  it("is the page's own otherwise", () => {
    const others = [key("p"), key("P", "shiftKey"), key("F1", "ctrlKey"), key("p", "ctrlKey", "altKey"), key("c", "ctrlKey"), key("Escape"), key("F5")];
    expect(others.every((found) => found === undefined)).toBe(true);
  });

  it("can ask for these commands and no other", () => {
    expect(readEditorCommand({ editorCommand: "workbench.action.showCommands" })).toBe("workbench.action.showCommands");
    for (const other of [null, "F1", {}, { editorCommand: "workbench.action.terminal.new" }, { editorCommand: 1 }]) {
      expect(readEditorCommand(other)).toBeUndefined();
    }
    expect(readOr(boardFromPage, { type: "command", command: "workbench.action.showCommands" })).toBeDefined();
    expect(readOr(boardFromPage, { type: "command", command: "workbench.action.terminal.new" })).toBeUndefined();
  });
});

describe("the flame graph", () => {
  const named = { function: "Net.forward", name: "Net.forward", wholeName: "Net.forward" };
  const place: Frame = { ...named, kind: "line", file: "/p/model.py", line: 42, uri: "file:///p/model.py", currentLine: 44 };
  const node = (frame: number, value: number, self: number, children: FlameNode[] = []): FlameNode => {
    return { frame, value, self, valuePerStep: value / 2, selfPerStep: self / 2, words: `${value / 2} ns`, children };
  };
  const graph: FlameGraph = {
    metric: "device",
    of: "device",
    rank: null,
    unit: "nanoseconds",
    total: 100_000,
    totalPerStep: 50_000,
    totalWords: "50 µs",
    stepWords: "per step",
    depth: "kernel",
    frames: [place, { ...place, line: 7, currentLine: null, uri: null }],
    roots: [
      node(0, 99_990, 9, [node(1, 50_000, 50_000)]),
      node(-1, 10, 10),
    ],
  };

  it("sends names and indexes, no address", () => {
    const tree = drawnTree(graph);
    expect(tree.children.map((node) => node.name)).toEqual(["Net.forward model.py:44", "(no user line)"]);
    expect(tree.children[0]?.children[0]).toMatchObject({ name: "Net.forward model.py:7", frame: 1, self: 25_000 });
    expect(JSON.stringify(tree)).not.toContain("file://");
  });

  it("has times of one step", () => {
    expect(drawnTree(graph)).toMatchObject({ value: 50_000, children: [{ value: 49_995, self: 4.5, words: "49995 ns" }, { value: 5 }] });
  });

  it("finds a line as recorded, in every function that it runs in", () => {
    const twice = { ...graph, frames: [...graph.frames, { ...place, function: "<listcomp>" }] };
    expect(framesOf(twice, { file: "/p/model.py", line: 42 })).toEqual([0, 2]);
    expect(framesOf(twice, { file: "/p/model.py", line: 44 })).toEqual([]);
  });

  const nowhere = { function: "", file: "", line: 0, uri: null, currentLine: null };
  const module: Frame = { ...nowhere, kind: "module", name: "mlp", wholeName: "h.0.mlp", file: "/env/pack/layers.py", line: 30, uri: "file:///env/pack/layers.py", currentLine: 31 };
  const library: Frame = { ...module, kind: "library", function: "MLP.forward", name: "MLP.forward", wholeName: "MLP.forward", line: 42, currentLine: 42 };
  const kernel: Frame = { ...nowhere, kind: "kernel", name: "gemm<float>", wholeName: "void ns::gemm<float>(float*)" };
  const other: Frame = { ...nowhere, kind: "other", name: "(other)", wholeName: "" };
  const deep: FlameGraph = {
    ...graph,
    frames: [place, { ...place, line: 7 }, module, library, kernel, other],
    roots: [node(0, 100, 0, [node(1, 40, 0, [node(4, 40, 40)]), node(2, 60, 0, [node(3, 50, 0, [node(4, 50, 50)]), node(5, 10, 10)])])],
  };

  it("leads from a part to its own file where that is here, else to the line whose work it is", () => {
    const opens = (of: FlameGraph): number[] => {
      const walk = (nodes: readonly DrawnNode[]): number[] => nodes.flatMap((one) => [one.opens, ...walk(one.children)]);
      return walk(drawnTree(of).children);
    };
    expect(opens(deep)).toEqual([0, 1, 1, 2, 3, 0, 0]);
    const elsewhere = deep.frames.map((frame) => ({ ...frame, uri: frame.kind === "line" ? frame.uri : null }));
    expect(opens({ ...deep, frames: elsewhere })).toEqual([0, 1, 1, 0, 0, 0, 0]);
    expect(opens({ ...deep, roots: [node(-1, 10, 0, [node(4, 10, 10)])] })).toEqual([-1, -1]);
  });

  it("says what a part is, with its whole name and its place", () => {
    const labels = frameLabels(deep).slice(2).map(({ name, place: where }) => [name, where]);
    expect(labels).toEqual([
      ["mlp", "module h.0.mlp · /env/pack/layers.py:30"],
      ["MLP.forward layers.py:42", "library line · /env/pack/layers.py:42"],
      ["gemm<float>", "kernel void ns::gemm<float>(float*)"],
      ["(other)", "small parts"],
    ]);
  });

  it("marks a line's boxes, not those of library lines", () => {
    const same = deep.frames.map((frame) => ({ ...frame, file: "/p/model.py" }));
    expect(framesOf({ ...deep, frames: same }, { file: "/p/model.py", line: 42 })).toEqual([0]);
  });

  it("gives each kind a colour of its own, the deeper the more of the time is a box's own", () => {
    expect(new Set(KINDS.map((kind) => kindColour(kind))).size).toBe(KINDS.length);
    for (const kind of KINDS) {
      expect(kindColour(kind, 1) === kindColour(kind)).toBe(kind === "other");
    }
    const [line] = drawnTree(deep).children;
    const [called, below] = line?.children ?? [];
    const whole = 50;
    // 60 of the line's 100 are its own, in a module; 40 stand in a line that it calls.
    const colours = [line, called, below, below?.children[0]?.children[0]].map((box) => box && boxColour(box, whole));
    expect(colours).toEqual([kindColour("line", 1), kindColour("line", 1), kindColour("module", 0), kindColour("kernel", 1)]);
    expect(line && boxColour({ ...line, children: line.children.map((child) => ({ ...child, kind: "line" })) }, whole)).toBe(kindColour("line", 0));
    expect(line && boxColour({ ...line, frame: -1 }, whole)).toBe(kindColour("other"));
  });

  it("names its boxes anew when lines have moved", () => {
    const moved = { ...graph, frames: [{ ...place, currentLine: 99 }] };
    const message = { type: "labels", labels: frameLabels(moved) };
    expect(read(toPage, message, "message")).toEqual({ type: "labels", labels: [{ name: "Net.forward model.py:99", place: "/p/model.py:42" }] });
  });

  it("sends what its page reads", () => {
    const message = { type: "graph", root: drawnTree(deep), metric: "device", metrics: ["device", "cpu"], depth: "kernel", depths: ["line", "kernel"], rank: null, ranks: [0, 1], caption: "", isDevice: true };
    expect(read(toPage, message, "message")).toEqual(message);
  });

  it.each([{ type: "open", frame: -1 }, { type: "open", frame: "0" }, { type: "choose", metric: "x", rank: null, depth: "line" }, { type: "choose", metric: "cpu", rank: null, depth: "x" }, { type: "eval" }])(
    "takes no other message from its page: %j",
    (message) => expect(readOr(fromPage, message)).toBeUndefined(),
  );
});

describe("a page", () => {
  const parts = { title: "T", cspSource: "https://own", script: "s.js", style: "s.css", body: "<main></main>" };

  it("lets in nothing but its own script and styles", () => {
    const html = page(parts, "abc");
    expect(html).toContain("default-src &#39;none&#39;; script-src &#39;nonce-abc&#39;; style-src https://own; font-src https://own");
    expect(html).not.toContain("unsafe-");
    expect(html).not.toContain("frame-src");
  });

  it("escapes what it is given", () => {
    const html = page({ ...parts, data: { folder: `"><script>x</script>` }, frameOrigin: "http://localhost:1" }, "abc");
    expect(html).not.toContain("<script>x");
    expect(html).toContain("frame-src http://localhost:1");
  });
});

describe("a rank chosen in the flame graph", () => {
  it("is kept in a run that has it; else all ranks are shown", () => {
    expect(rankIn([0, 1, 2, 3], 3)).toBe(3);
    expect(rankIn([0, 1], 3)).toBeNull();
    expect(rankIn([], 0)).toBeNull();
    expect(rankIn([0, 1], null)).toBeNull();
  });
});
