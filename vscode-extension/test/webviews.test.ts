import { describe, expect, it } from "vitest";
import { editorCommand } from "../src/dashboard/keys";
import { fromPage as dashboardFromPage, readEditorCommand, readFrameClick } from "../src/dashboard/messages";
import { isLocalAbsolute } from "../src/dashboard/paths";
import { drawnTree, frameLabels, framesOf } from "../src/flame/drawn";
import { fromPage, toPage } from "../src/flame/messages";
import { page } from "../src/page";
import { read, readOr } from "../src/shape";
import type { FlameGraph, FlameNode } from "../src/server/contract";

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
    expect(readOr(dashboardFromPage, { type: "open", filename: "a.py", line: 1 })).toBeDefined();
    expect(readOr(dashboardFromPage, { type: "run", command: "x" })).toBeUndefined();
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
    expect(readOr(dashboardFromPage, { type: "command", command: "workbench.action.showCommands" })).toBeDefined();
    expect(readOr(dashboardFromPage, { type: "command", command: "workbench.action.terminal.new" })).toBeUndefined();
  });
});

describe("the flame graph", () => {
  const place = { function: "Net.forward", file: "/p/model.py", line: 42, uri: "file:///p/model.py", currentLine: 44 };
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

  it("names its boxes anew when lines have moved", () => {
    const moved = { ...graph, frames: [{ ...place, currentLine: 99 }] };
    const message = { type: "labels", labels: frameLabels(moved) };
    expect(read(toPage, message, "message")).toEqual({ type: "labels", labels: [{ name: "Net.forward model.py:99", place: "/p/model.py:42" }] });
  });

  it("sends what its page reads", () => {
    const message = { type: "graph", root: drawnTree(graph), metric: "device", metrics: ["device", "cpu"], rank: null, ranks: [0, 1], caption: "", isDevice: true };
    expect(read(toPage, message, "message")).toEqual(message);
  });

  it.each([{ type: "open", frame: -1 }, { type: "open", frame: "0" }, { type: "choose", metric: "x", rank: null }, { type: "eval" }])(
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
