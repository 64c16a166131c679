/** The Runs view: the traces there are; show, compare, delete, reveal, pick one of them. */

import * as vscode from "vscode";
import { ask } from "../notify";
import type { Run } from "../server/contract";
import type { Chosen, Requests } from "../server/requests";
import type { Session } from "../session";
import { readingWords, runRows, tracesIn, type RunRow, type TraceRow } from "./runRows";
import { plain } from "../status/words";

type Node = RunRow | TraceRow;
/** A run with at most so many traces is shown open. */
const FEW_TRACES = 4;
const BASELINE = " · baseline";
const WARNING = new vscode.ThemeIcon("warning", new vscode.ThemeColor("list.warningForeground"));
const AGE_REFRESH_MS = 60_000;
const TRACE_NAME = /\.pt\.trace\.json(\.gz)?$/;
/** Of the files beside a trace, in place of its own: the account of the whole run, what was tried. */
const ENDINGS_BESIDE = [".deepscope-run", ".deepscope-tries"];

export class RunsView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<Node>;
  private runs: readonly Run[] = [];
  private rows: Node[] = [];
  private readonly timer = setInterval(() => this.redraw(), AGE_REFRESH_MS);
  private generation = 0;

  constructor(
    private readonly session: Session,
    private readonly requests: Requests,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.view = vscode.window.createTreeView<Node>("deepscope.runs", { treeDataProvider: this });
  }

  async refresh(): Promise<void> {
    const generation = (this.generation += 1);
    let runs: readonly Run[] = [];
    try {
      runs = await this.requests.listRuns();
    } catch (error) {
      this.log.debug(`Runs: ${String(error)}`);
    }
    if (generation === this.generation) {
      this.runs = runs;
      this.draw();
    }
  }

  /** Says what is being read; the runs that are there are listed before they are read. */
  async showReading(): Promise<void> {
    this.view.message = readingWords(this.session.status?.message ?? "traces");
    if (this.rows.length === 0) {
      await this.refresh();
    }
  }

  /** Reading has ended. */
  endReading(): void {
    // Only without a message are the words of an empty view shown.
    (this.view as { message: string | undefined }).message = undefined;
  }

  /** Traces for a picker, the newest first. */
  get traces(): readonly { readonly run: Node; readonly row: TraceRow }[] {
    return this.rows.flatMap((run) => tracesIn([run]).map((row) => ({ run, row })));
  }

  getChildren(node?: Node): Node[] {
    return node === undefined ? this.rows : node.kind === "run" ? [...node.traces] : [];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    const collapsed = vscode.TreeItemCollapsibleState;
    if (node.kind === "run") {
      const isOpen = node.isSelected || node.traces.length <= FEW_TRACES;
      const item = new vscode.TreeItem(node.label, isOpen ? collapsed.Expanded : collapsed.Collapsed);
      // VS Code remembers by its id whether a row is open: a run opens when its trace comes to be shown.
      item.id = `run:${node.isSelected ? "shown" : "other"}:${node.id}`;
      item.description = `${node.description}${node.traces.some((row) => this.isBaseline(row)) ? BASELINE : ""}`;
      item.tooltip = new vscode.MarkdownString().appendText(`${node.label} · ${node.description}`);
      item.iconPath = new vscode.ThemeIcon("folder");
      item.contextValue = "run";
      return item;
    }
    const isBaseline = this.isBaseline(node);
    const item = new vscode.TreeItem(node.label, collapsed.None);
    item.id = `trace:${node.trace.path}`;
    item.description = `${node.description}${isBaseline ? BASELINE : ""}`;
    item.iconPath = node.problem !== "" ? WARNING : new vscode.ThemeIcon(node.trace.selected ? "check" : isBaseline ? "diff" : "graph-line");
    item.tooltip = new vscode.MarkdownString().appendText(`${node.label} · ${node.description}\n\n${node.trace.path}${node.problem === "" ? "" : `\n\n${node.problem}`}`);
    item.contextValue = "trace";
    item.command = { command: "deepscope.pickTrace", title: "Show This Trace", arguments: [node] };
    return item;
  }

  /** Discards a trace with the account of its run; asks first. */
  async delete(node: TraceRow): Promise<void> {
    const { path, name } = node.trace;
    if (!TRACE_NAME.test(path)) {
      return;
    }
    const choice = await ask(`Delete the trace ${name}?`, path, "Delete");
    if (choice !== "Delete") {
      return;
    }
    await discard(path);
    for (const ending of ENDINGS_BESIDE) {
      await discard(path.replace(TRACE_NAME, ending)).catch(() => undefined); // few traces have one
    }
    await this.refresh();
  }

  dispose(): void {
    clearInterval(this.timer);
    vscode.Disposable.from(this.changed, this.view).dispose();
  }

  private draw(): void {
    const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
    this.rows = runRows(this.runs, folders, Date.now());
    this.changed.fire(undefined);
  }

  /** Ages change without news. */
  private redraw(): void {
    if (this.view.visible && this.rows.length > 0) {
      this.draw();
    }
  }

  private isBaseline({ trace }: TraceRow): boolean {
    return this.session.status?.baseline?.paths.includes(trace.path) ?? false;
  }
}

/** Moves a file to the bin, or deletes it where there is none. */
async function discard(path: string): Promise<void> {
  const uri = vscode.Uri.file(path);
  try {
    await vscode.workspace.fs.delete(uri, { useTrash: true });
  } catch {
    await vscode.workspace.fs.delete(uri, { useTrash: false });
  }
}

/** The trace chosen; null for the newest, whichever that is; undefined for no choice. */
export async function pickTrace(runs: RunsView, session: Session): Promise<Chosen | null | undefined> {
  await runs.refresh();
  type Item = vscode.QuickPickItem & { readonly path: string | null };
  const newest: Item = { label: "$(sync) Newest trace", description: "follow new runs as they come", path: null };
  const items = runs.traces.map(
    ({ run, row }): Item => ({
      label: `${row.trace.selected ? "$(check) " : ""}${plain(run === row ? row.label : `${run.label} · ${row.label}`)}`,
      description: plain(row.description),
      detail: plain(row.trace.path),
      path: row.trace.path,
    }),
  );
  const browse: Item = { label: "$(folder-opened) Browse…", description: "a trace file anywhere", path: "" };
  const title = session.status?.trace == null ? "Show a trace" : "Show another trace";
  const chosen = await vscode.window.showQuickPick([newest, ...items, browse], { title, matchOnDescription: true, matchOnDetail: true });
  if (chosen?.path !== "") {
    return chosen?.path == null ? chosen?.path : { path: chosen.path };
  }
  const files = await vscode.window.showOpenDialog({ title, filters: { Traces: ["json", "gz"] }, canSelectMany: false });
  return files?.[0] && { path: files[0].fsPath };
}
