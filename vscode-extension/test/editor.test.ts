import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type * as Vscode from "vscode";
import { DashboardPanel } from "../src/dashboard/panel";
import { Heat } from "../src/heat/heat";
import { Session } from "../src/session";
import { CallPathsView } from "../src/views/callPathsView";

const editor = vi.hoisted(() => {
  const nothing = (): { dispose(): void } => ({ dispose: () => undefined });
  class EventEmitter<T> {
    readonly listeners = new Set<(value: T) => void>();
    readonly event = (listener: (value: T) => void): { dispose(): void } => {
      this.listeners.add(listener);
      return { dispose: () => this.listeners.delete(listener) };
    };
    fire(value: T): void {
      this.listeners.forEach((listener) => listener(value));
    }
  }
  const drawn: (readonly unknown[])[] = [];
  const document = { languageId: "python", version: 1, lineCount: 9, lineAt: (line: number) => ({ range: line }), uri: { scheme: "file", fsPath: "/a.py" } };
  const closed = new EventEmitter<undefined>();
  const selected = new EventEmitter<undefined>();
  const panel = {
    webview: { asWebviewUri: String, onDidReceiveMessage: nothing, postMessage: nothing, cspSource: "" },
    onDidDispose: closed.event,
    dispose: () => closed.fire(undefined),
  };
  const module = {
    EventEmitter,
    Disposable: { from: nothing },
    ThemeColor: String,
    DecorationRangeBehavior: {},
    OverviewRulerLane: {},
    ViewColumn: {},
    Uri: { joinPath: () => "", parse: () => ({ scheme: "file", query: "" }) },
    commands: { executeCommand: nothing },
    window: {
      activeTextEditor: { document, selection: { active: { line: 0 } } },
      createTreeView: () => ({ visible: true, onDidChangeVisibility: nothing }),
      onDidChangeTextEditorSelection: selected.event,
      showErrorMessage: () => Promise.resolve(undefined),
      visibleTextEditors: [{ document, setDecorations: (_: unknown, shown: readonly unknown[]) => drawn.push(shown) }],
      createTextEditorDecorationType: nothing,
      createWebviewPanel: () => panel,
      registerWebviewPanelSerializer: nothing,
      onDidChangeVisibleTextEditors: nothing,
      onDidChangeActiveTextEditor: nothing,
    },
    workspace: {
      getWorkspaceFolder: () => undefined,
      isTrusted: true,
      createFileSystemWatcher: () => ({ onDidCreate: nothing }),
      getConfiguration: () => ({ get: (_: string, otherwise: unknown) => otherwise }),
      onDidChangeConfiguration: nothing,
      onDidChangeTextDocument: nothing,
      onDidGrantWorkspaceTrust: nothing,
    },
  };
  return { module, panel, drawn, selected };
});
vi.mock("vscode", () => editor.module);

const log = { error: vi.fn(), info: vi.fn(), warn: vi.fn(), debug: vi.fn() } as unknown as Vscode.LogOutputChannel;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("an answer that comes after the trace is gone draws no heat", async () => {
  const answers: ((lines: readonly unknown[]) => void)[] = [];
  const heat = new Heat({ annotations: () => new Promise((resolve) => answers.push(resolve)) } as never, log);
  heat.setOn(true);
  await vi.advanceTimersByTimeAsync(1);
  heat.setOn(false);
  await vi.advanceTimersByTimeAsync(1);
  answers[0]?.([{ line: 1, share: 0.5, mark: "" }]);
  await vi.advanceTimersByTimeAsync(1);
  expect(editor.drawn.flat()).toEqual([]);
});

test("a wait for the server that is given up leaves no listener", async () => {
  const server = { requests: {}, onStatus: vi.fn(), onRunning: vi.fn(), stop: vi.fn() };
  const interpreters = { onDidChangeActive: () => Promise.resolve(undefined), resolve: () => new Promise(() => undefined) };
  const session = new Session(interpreters as never, server as never, log);
  void session.start();
  const waited = session.settled();
  await vi.advanceTimersByTimeAsync(60_000);
  await waited;
  expect((session as unknown as { changes: { listeners: Set<unknown> } }).changes.listeners.size).toBe(0);
});

test("a start without a folder to start in has failed, and the next one begins anew", async () => {
  const server = { requests: {}, onStatus: vi.fn(), onRunning: vi.fn(), stop: vi.fn() };
  const resolve = vi.fn(() => Promise.reject(new Error("EACCES: permission denied, mkdir")));
  const session = new Session({ onDidChangeActive: () => Promise.resolve(undefined), resolve } as never, server as never, log);
  await session.start();
  expect(session.standing).toBe("failed");
  await session.start("asked");
  expect([session.standing, resolve.mock.calls.length]).toEqual(["failed", 2]);
});

test("the call paths are those of the line that the cursor went to last", async () => {
  const answers: ((line: object) => void)[] = [];
  const linePaths = vi.fn((line: object) => Promise.resolve({ line, callers: [], callees: [], stepWords: "" }));
  const requests = { recordedLine: () => new Promise((resolve) => answers.push(resolve)), linePaths };
  new CallPathsView({ get: () => undefined } as never, { status: { trace: {} } } as never, requests as never, log);
  for (let moves = 1; moves <= 2; moves += 1) {
    editor.selected.fire(undefined);
    await vi.advanceTimersByTimeAsync(1000);
  }
  answers[1]?.({ file: "/a.py", line: 2 });
  await vi.advanceTimersByTimeAsync(1);
  answers[0]?.({ file: "/a.py", line: 1 });
  await vi.advanceTimersByTimeAsync(1);
  expect(linePaths.mock.calls.map(([line]) => line)).toEqual([{ file: "/a.py", line: 2 }]);
});

test("a dashboard that is closed before its server starts starts none", async () => {
  vi.useRealTimers();
  const folder = mkdtempSync(path.join(tmpdir(), "deepscope-"));
  writeFileSync(path.join(folder, "python"), "");
  let list: (runs: readonly unknown[]) => void = () => undefined;
  const listed = new Promise<readonly unknown[]>((resolve) => (list = resolve));
  const session = { interpreter: { python: path.join(folder, "python") }, settled: () => Promise.resolve(), status: undefined };
  const context = { globalStorageUri: { fsPath: folder }, workspaceState: {}, extensionUri: "" };
  const dashboard = new DashboardPanel(context as never, session as never, { listRuns: () => listed } as never, {} as never, log);
  await dashboard.open();
  const internals = dashboard as unknown as { running(): Promise<unknown>; started: unknown };
  const starting = internals.running();
  await new Promise((resolve) => setTimeout(resolve, 20));
  editor.panel.dispose();
  list([]);
  await expect(starting).rejects.toThrow("closed before");
  expect(internals.started).toBeUndefined();
});
