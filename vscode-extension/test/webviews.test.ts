import { describe, expect, it } from "vitest";
import { fromPage as dashboardFromPage, readFrameClick } from "../src/dashboard/messages";
import { isLocalAbsolute } from "../src/dashboard/paths";
import { drawnTree, frameOf } from "../src/flame/drawn";
import { fromPage, toPage } from "../src/flame/messages";
import { page } from "../src/page";
import { read, readOr } from "../src/shape";
import type { FlameGraph } from "../src/server/contract";

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

describe("the flame graph", () => {
  const place = { function: "Net.forward", file: "/p/model.py", line: 42, uri: "file:///p/model.py", currentLine: 44 };
  const graph: FlameGraph = {
    metric: "device",
    total: 100_000,
    frames: [place, { ...place, line: 7, currentLine: null, uri: null }],
    roots: [
      { frame: 0, value: 99_990, self: 9, children: [{ frame: 1, value: 50_000, self: 50_000, children: [] }] },
      { frame: -1, value: 10, self: 10, children: [] },
    ],
  };

  it("sends names and indexes, no address", () => {
    const tree = drawnTree(graph);
    expect(tree.children.map((node) => node.name)).toEqual(["Net.forward model.py:44"]); // the other is too thin to see
    expect(tree.children[0]?.children[0]).toMatchObject({ name: "Net.forward model.py:7", frame: 1, self: 50_000 });
    expect(JSON.stringify(tree)).not.toContain("file://");
  });

  it("finds a line as it stands now or as recorded", () => {
    expect(frameOf(graph, { uri: "file:///p/model.py", line: 44 })).toBe(0);
    expect(frameOf(graph, { file: "/p/model.py", line: 7 })).toBe(1);
    expect(frameOf(graph, { file: "/p/model.py", line: 8 })).toBeUndefined();
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
