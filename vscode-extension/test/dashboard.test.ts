import { describe, expect, it } from "vitest";
import { commandLink, flameAddress, recordedOf, sawFlameGraph, textPlace } from "../src/dashboard/links";
import { fromPages, keptState, toPages } from "../src/dashboard/messages";
import { addressIn, reasonOf } from "../src/dashboard/server";
import type { Ask } from "../src/pages/contract";
import { Trail } from "../src/pages/app/address";
import { Extension, PanelSource } from "../src/pages/source/panel";
import { FailedError, NotYetError } from "../src/pages/source/source";
import { object, readOr, text } from "../src/shape";

describe("what the pages in a panel may say", () => {
  it.each([
    { type: "ask", id: 1, name: "overview", query: "rank=1&stage=fit&file=%2Fa%20b" },
    { type: "ask", id: 1, name: "runs", query: "" },
    { type: "open", file: "C:\\a b\\ü.py", line: 3 },
    { type: "at", hash: "#/lines?file=%2Fa.py&line=3" },
    { type: "at", hash: "" },
  ])("%j", (message) => expect(readOr(fromPages, message)).toEqual(message));

  it.each([
    null,
    {},
    { type: "ask", id: -1, name: "overview", query: "" },
    { type: "ask", id: 1, name: "../secrets", query: "" },
    { type: "ask", id: 1, name: "overview", query: "a=b HTTP/1.1\r\nX: y" },
    { type: "ask", id: 1, name: "overview", query: "a=b#c" },
    { type: "open", file: "a\0.py", line: 1 },
    { type: "open", file: "", line: 1 },
    { type: "open", file: "a.py", line: 1.5 },
    { type: "at", hash: "https://example.org" },
    { type: "command", command: "workbench.action.terminal.new" },
  ])("nothing else: %j", (message) => expect(readOr(fromPages, message)).toBeUndefined());

  it("and what is kept of a panel is an address of theirs", () => {
    expect(readOr(keptState, { hash: "#/lines?line=3" })).toEqual({ hash: "#/lines?line=3" });
    expect(readOr(keptState, { hash: "javascript:alert(1)" })).toBeUndefined();
    expect(readOr(keptState, undefined)).toBeUndefined();
  });
});

describe("answers by way of the extension", () => {
  const question: Ask<{ readonly run?: string }, { readonly title: string }> = { name: "header", answer: object({ title: text }) };

  function asked(): { posted: unknown[]; told: unknown[]; extension: Extension; source: PanelSource } {
    const [posted, told]: [unknown[], unknown[]] = [[], []];
    const extension = new Extension((message) => posted.push(message), (message) => told.push(message));
    return { posted, told, extension, source: new PanelSource(extension) };
  }

  it("find their questions in any order", async () => {
    const { posted, extension, source } = asked();
    const answers = [source.ask(question, { run: "a b" }), source.ask(question, {})];
    expect(posted).toEqual([
      { type: "ask", id: 1, name: "header", query: "run=a+b" },
      { type: "ask", id: 2, name: "header", query: "" },
    ]);
    extension.receive({ type: "answer", id: 2, status: 200, body: '{"title":"two"}' });
    extension.receive({ type: "answer", id: 1, status: 200, body: '{"title":"one"}' });
    expect(await Promise.all(answers)).toEqual([{ title: "one" }, { title: "two" }]);
    for (const message of posted) {
      expect(readOr(fromPages, message)).toEqual(message);
    }
  });

  it.each([
    [202, '{"progress":{"done":1,"total":4}}', NotYetError],
    [422, '{"error":"cut off"}', FailedError],
    [200, '{"title":', FailedError],
  ])("say what the server says: %i %s", async (status, body, kind) => {
    const { extension, source } = asked();
    const answer = source.ask(question, {});
    extension.receive({ type: "answer", id: 1, status, body });
    await expect(answer).rejects.toThrow(kind);
  });

  it("are told apart from what else the extension says, and from strangers' messages", () => {
    const { told, extension } = asked();
    for (const message of [{ type: "start", hash: "" }, { type: "changed", isOther: true }, { type: "go", hash: "#/lines" }]) {
      expect(readOr(toPages, message)).toEqual(message);
      extension.receive(message);
    }
    extension.receive({ type: "go", hash: "https://example.org" });
    extension.receive({ type: "answer", id: 9, status: 200, body: "{}" });
    extension.receive("go");
    expect(told).toEqual([{ type: "start", hash: "" }, { type: "changed", isOther: true }, { type: "go", hash: "#/lines" }]);
  });

  it("open a line with the file as it was recorded, and none without a name", () => {
    const { posted, source } = asked();
    source.open({ file: "/p/a.py", line: 3 });
    source.open({ file: "", line: 3 });
    expect(posted).toEqual([{ type: "open", file: "/p/a.py", line: 3 }]);
  });
});

describe("the way back in a panel", () => {
  it("leads through the places and forward again; a new place ends the way forward", () => {
    const trail = new Trail("a");
    expect(trail.step(-1)).toBeUndefined();
    trail.visit("b");
    trail.visit("b");
    trail.visit("c");
    expect([trail.step(-1), trail.step(-1), trail.step(-1)]).toEqual(["b", "a", undefined]);
    expect([trail.step(1), trail.here]).toEqual(["b", "b"]);
    trail.visit("d");
    expect([trail.step(1), trail.step(-1), trail.step(1)]).toEqual([undefined, "b", "d"]);
  });

  it("has another address of the same place in its stead", () => {
    const trail = new Trail("a");
    trail.visit("b?step=1");
    trail.amend("b?step=2");
    expect([trail.step(-1), trail.step(1)]).toEqual(["a", "b?step=2"]);
  });
});

describe("a link in a hover", () => {
  it("carries a place of any name, and ends where it ends", () => {
    const place = { uri: "file:///p/a)(b%20[x].py", line: 3 };
    const link = commandLink("Show", "deepscope.showInDashboard", place);
    const found = /^\[Show\]\(command:deepscope\.showInDashboard\?([^()[\]\s]*)\)$/.exec(link)?.[1] ?? "";
    expect(JSON.parse(decodeURIComponent(found))).toEqual([place]);
    expect(readOr(textPlace, place)).toEqual(place);
    expect(readOr(textPlace, { line: { file: "/p/a.py", line: 3 } })).toBeUndefined();
  });

  it.each([
    [{ line: { file: "/p/a.py", line: 3, function: "f" } }, { file: "/p/a.py", line: 3 }],
    [{ path: { file: "/p/a.py", line: 4 }, line: undefined }, { file: "/p/a.py", line: 4 }],
    [{ gone: { file: "/p/a.py", line: 5 } }, { file: "/p/a.py", line: 5 }],
    [{ scheme: "file", path: "/p/a.py" }, undefined], // what the editor's own menu hands over: then the cursor's line is meant
    [null, undefined],
    [undefined, undefined],
  ])("is told by a row, not by the menu that %j comes from", (row, line) => expect(recordedOf(row)).toEqual(line));
});

describe("the server's own words", () => {
  it("are an address of this machine alone on a line", () => {
    expect(addressIn("http://127.0.0.1:4711/?token=a-b_C1")?.port).toBe("4711");
    for (const line of ["", "shown", "see http://127.0.0.1:4711/?token=a", "http://example.org:80/?token=a", "http://127.0.0.1:4711/?token=a&x=y"]) {
      expect(addressIn(line)).toBeUndefined();
    }
  });

  it("tell why it did not start, with what helps", () => {
    expect(reasonOf(["Usage: deepscope", "Error: No such command 'view'."], "/e/python", 2)).toMatch("run: /e/python -m pip install --upgrade deepscope");
    expect(reasonOf(["Error: No such option: --follow-stdin"], "/e/python", 2)).toMatch("pip install --upgrade");
    expect(reasonOf(["/e/python: No module named deepscope"], "/e/python", 1)).toMatch("run: /e/python -m pip install deepscope");
    expect(reasonOf(["Error: peaks: no such type", ""], "/e/python", 2)).toBe("peaks: no such type");
    expect(reasonOf([], "/e/python", 3)).toBe("deepscope view ended with exit code 3");
    expect(reasonOf([], "/e/python", null)).toBe("deepscope view ended with a signal");
  });
});

describe("the flame graph's address", () => {
  it("has the line, and the depth that was chosen last", async () => {
    const kept = new Map<string, unknown>();
    const memento = { get: (key: string) => kept.get(key), update: (key: string, value: unknown) => Promise.resolve(void kept.set(key, value)) };
    expect(flameAddress(memento)).toBe("#/flame?depth=kernel");
    expect(await sawFlameGraph(memento, "#/flame?run=a&depth=module")).toBe(true);
    expect(await sawFlameGraph(memento, "#/flame")).toBe(true);
    expect(await sawFlameGraph(memento, "#/flames?depth=line")).toBe(false);
    expect(flameAddress(memento, { file: "/a b/ü.py", line: 3 })).toBe("#/flame?depth=module&file=%2Fa+b%2F%C3%BC.py&line=3");
    await sawFlameGraph(memento, "#/flame?depth=x");
    expect(flameAddress(memento)).toBe("#/flame?depth=kernel");
  });
});
