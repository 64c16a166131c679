import { h } from "preact";
import { describe, expect, it } from "vitest";
import type { BelowNode, LineFile } from "../src/pages/contract";
import { editorLink } from "../src/pages/lines/LinePanel";
import { fileTree, treeRows } from "../src/pages/lines/FileTree";
import { belowRows, childrenOf, firstOpen, shortName } from "../src/pages/lines/BelowTree";
import { opens, tokens, type Open } from "../src/pages/lines/python";
import { barsOf, heat } from "../src/pages/lines/SourceView";
import { Tree } from "../src/pages/lines/Tree";
import { drawn } from "./drawn";

function file(name: string, cost: number): LineFile {
  return { file: `/home/${name}`, name, group: "project", lines: 1, values: [cost, null] };
}

describe("files as a tree", () => {
  const files = [file("src/nets/a.py", 5), file("src/nets/deep/b.py", 7), file("train.py", 9), file("/opt/x/y.py", 1)];

  it("folds folders that hold one folder alone, and adds up what adds up", () => {
    const rows = treeRows(fileTree(files), 0, new Set(), "");
    expect(rows.map(({ name, depth, values }) => [name, depth, values[0]])).toEqual([
      ["src/nets", 0, 12],
      ["deep", 1, 7],
      ["b.py", 2, 7],
      ["a.py", 1, 5],
      ["train.py", 0, 9],
      ["/opt/x", 0, 1],
      ["y.py", 1, 1],
    ]);
    expect(rows[0]?.values[1]).toBeNull();
  });

  it("hides what is in closed folders, but not what is looked for", () => {
    const tree = fileTree(files);
    const closed = new Set(treeRows(tree, 0, new Set(), "").flatMap(({ file: own, key }) => (own === undefined ? [key] : [])));
    expect(treeRows(tree, 0, closed, "").map(({ name }) => name)).toEqual(["src/nets", "train.py", "/opt/x"]);
    expect(treeRows(tree, 0, closed, "B.PY").map(({ name }) => name)).toEqual(["src/nets", "deep", "b.py"]);
    expect(treeRows(tree, 0, closed, "nothing")).toEqual([]);
  });
});

describe("Python in colours", () => {
  const kinds = (line: string, open: Open = ""): [string, string][] => tokens(line, open)[0].flatMap(({ kind, text }) => (kind === "" ? [] : [[kind, text]]));

  it("knows keywords, names that are defined, numbers, texts and comments", () => {
    expect(kinds('@torch.no_grad()')).toEqual([["decorator", "@torch.no_grad"]]);
    expect(kinds('def f(x: int = 0x1F) -> "T":  # why "not"')).toEqual([
      ["keyword", "def"],
      ["definition", "f"],
      ["number", "0x1F"],
      ["text", '"T"'],
      ["comment", '# why "not"'],
    ]);
    expect(kinds("y = a @ b if x.is_not else rb'\\'' + f\"{1}\"")).toEqual([
      ["keyword", "if"],
      ["keyword", "else"],
      ["text", "rb'\\''"],
      ["text", 'f"{1}"'],
    ]);
    expect(kinds("match = type(x)")).toEqual([]);
    expect(kinds("match value:")).toEqual([["keyword", "match"]]);
  });

  it("carries an open text to the next lines", () => {
    const text = ['x = """a', "# no comment", 'b""" + y  # but here', "def f(): pass"];
    expect(opens(text)).toEqual(["", '"""', '"""', ""]);
    expect(kinds(text[1] ?? "", '"""')).toEqual([["text", "# no comment"]]);
    expect(kinds(text[2] ?? "", '"""')).toEqual([["text", 'b"""'], ["comment", "# but here"]]);
  });

  it("loses no letter of any line", () => {
    for (const line of ["", "   ", "é = 'ü", "a\\", "$ ? ` 漢字 = 1_000.5e-3j", "x".repeat(5000), '"""', "'\\"]) {
      expect(tokens(line, "")[0].map(({ text }) => text).join("")).toBe(line);
    }
  });
});

describe("links to an editor", () => {
  it("name absolute paths of this machine alone", () => {
    expect(editorLink("/home/ada/net.py", 7)).toBe("vscode://file/home/ada/net.py:7");
    expect(editorLink("C:\\code\\my net.py", 7)).toBe("vscode://file/C:/code/my%20net.py:7");
    for (const other of ["net.py", "", "//host/net.py", "\\\\host\\net.py", "<ipython-input>", "javascript:alert(1)"]) {
      expect(editorLink(other, 7)).toBeUndefined();
    }
    expect(editorLink("/a.py", 0)).toBeUndefined();
  });

  it("let nothing of a path be more than a path", () => {
    expect(editorLink('/a?b#c:1/"<x>\u202e.py', 2)).toBe("vscode://file/a%3Fb%23c%3A1/%22%3Cx%3E%E2%80%AE.py:2");
    expect(editorLink("/\ud800.py", 2)).toBeUndefined();
  });
});

describe("the tree below a line", () => {
  const node = (parent: number, totalNs: number, name = "x", kind: BelowNode["kind"] = "operator"): BelowNode => ({
    parent, kind, name, file: "", line: 0, place: "", selfNs: 0, totalNs, backwardNs: 0, calls: 1, layers: 1,
  });
  const nodes = [node(-1, 100), node(0, 80, "h.0", "module"), node(1, 50, "h.0.mlp", "module"), node(0, 5), node(2, 50)];
  const children = childrenOf(nodes);

  it("opens what has a good part of the line at first", () => {
    const open = firstOpen(nodes);
    expect(belowRows(nodes, children, open).map(({ key, depth }) => [key, depth])).toEqual([[0, 0], [1, 1], [2, 2], [4, 3], [3, 1]]);
    open.delete(1);
    expect(belowRows(nodes, children, open).map(({ key }) => key)).toEqual([0, 1, 3]);
    expect(belowRows([], [], new Set())).toEqual([]);
  });

  it("names a module by its path below the one that it stands in", () => {
    expect([1, 2, 3].map((index) => shortName(nodes, index))).toEqual(["h.0", ".mlp", "x"]);
  });
});

describe("keys in a tree", () => {
  it("act on the active row, and leave Enter to a link that has the focus", async () => {
    const acted: string[] = [];
    const rows = ["a", "b"].map((key) => ({ key, depth: 0, isOpen: undefined }));
    const all = await drawn(h(Tree<(typeof rows)[number]>, { name: "x", label: "X", rows, of: rows, act: ({ key }) => acted.push(key), lookOf: ({ key }) => key }));
    const [tree] = all.childNodes;
    let kept = 0;
    const press = async (key: string, target = tree): Promise<void> => tree?.fire("keydown", { key, target, currentTarget: tree, preventDefault: () => (kept += 1) });
    await press("ArrowDown");
    await press("Enter", tree?.childNodes[0]);
    expect([acted, kept]).toEqual([[], 1]);
    await press("Enter");
    expect([acted, kept]).toEqual([["b"], 2]);
  });
});

describe("shades", () => {
  it("are nothing for nothing and full for the largest", () => {
    expect([heat(0, 10), heat(10, 10), heat(5, 0)]).toEqual([0, 1, 0]);
  });

  it("divide the cost into forward, backward and the rest", () => {
    const columns = ["cost", "self", "backward"].map((key) => ({ key, title: key, kind: "time" as const, help: "", rank: 0 }));
    expect(barsOf([10, 8, 6], columns, [20, 8, 6])).toEqual({ forward: 0.1, backward: 0.3, rest: 0.1 });
    expect(barsOf([], columns, [])).toEqual({ forward: 0, backward: 0, rest: 0 });
  });
});
