import { describe, expect, it } from "vitest";
import { editorCommand, fromPage as boardFromPage, readEditorCommand, readFrameClick } from "../src/tensorboard/messages";
import { isLocalAbsolute } from "../src/paths";
import { page } from "../src/page";
import { readOr } from "../src/shape";
import { isSame, only } from "../src/tensorboard/process";

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

describe("what TensorBoard shows", () => {
  it("is a run's own traces, whatever lies beside them", () => {
    const run = only(["/w/runs/a.rank0.json", "/w/runs/a.rank1.json"]);
    expect(run.words).toEqual(["--trace", "/w/runs/a.rank0.json", "--trace", "/w/runs/a.rank1.json"]);
    expect([run.title, only(["/w/a.json"]).title]).toEqual(["/w/runs (2 traces of one run)", "/w/a.json"]);
    expect([isSame(run, only(["/w/runs/a.rank0.json"])), isSame(run, { ...run, title: "" }), isSame(run, undefined)]).toEqual([false, true, false]);
  });
});
