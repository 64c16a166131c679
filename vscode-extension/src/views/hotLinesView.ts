/** The Hot Lines view. Names in its tooltips come from traces: they are made of plain text. */

import { isDeepStrictEqual } from "node:util";
import * as vscode from "vscode";
import { levelOf } from "../heat/levels";
import type { HotLine, HotLines, HotMetric, HotModules, VanishedLine } from "../server/contract";
import type { Requests } from "../server/requests";
import type { Session } from "../session";
import { stepTimeWords } from "../status/words";
import { cursorPlace } from "../places";
import { copyText, describedRow, GROUPS, lineRows, METRICS, moduleRows, pathTo, spokenRow, vanishedRows, wholeRow, type GroupBy, type Row } from "./hotLinesRows";
import { dim } from "../elsewhere";
import { pick } from "../notify";

/** Of the cursor, before the view follows it. */
const CURSOR_PAUSE_MS = 150;

const STATE_BY = "deepscope.hotLines.by";
const STATE_METRIC = "deepscope.hotLines.metric";
const STATE_HIDDEN = "deepscope.hotLines.hidden";

const GROUP_WORDS: Readonly<Record<GroupBy, string>> = {
  line: "Lines",
  function: "Functions",
  file: "Files",
  module: "Modules of the model",
};
const METRIC_WORDS: Readonly<Record<HotMetric, string>> = {
  cost: "Cost",
  device: "Device time",
  cpu: "CPU time",
  wait: "Waiting for the device",
  idle: "Device idle meanwhile",
  memory: "Memory allocated",
};

export class HotLinesView implements vscode.TreeDataProvider<Row>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<Row>;
  private lines: HotLines | undefined;
  private modules: HotModules | undefined;
  private generation = 0;
  private isStale = false;
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  /** The cursor came to a line that had no row, or none yet: rows name their places a moment after an edit. */
  private isBehindCursor = false;

  constructor(
    private readonly state: vscode.Memento,
    private readonly session: Session,
    private readonly requests: Requests,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.view = vscode.window.createTreeView("deepscope.hotLines", { treeDataProvider: this, showCollapseAll: true });
    this.subscriptions = [
      this.view.onDidChangeVisibility(({ visible }) => {
        if (visible && this.isStale) {
          void this.ask("moved");
        }
        this.tellShown();
      }),
      vscode.window.onDidChangeTextEditorSelection(() => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => void this.followCursor(), CURSOR_PAUSE_MS);
      }),
    ];
  }

  /** Lines have moved: the rows name their places anew, if anybody sees them. */
  relocate(): void {
    this.isStale = true;
    if (this.view.visible) {
      void this.ask("moved");
    }
  }

  /** Asks for the numbers anew, or shows none. */
  async refresh(): Promise<void> {
    await this.ask("changed");
  }

  getChildren(row?: Row): Row[] {
    return row === undefined ? this.rows() : [...row.children];
  }

  /** The row that a line's row stands below; VS Code asks for it to unfold what hides a row. */
  getParent(row: Row): Row | undefined {
    return this.rows().find(({ children }) => children.some(({ id }) => id === row.id));
  }

  getTreeItem(row: Row): vscode.TreeItem {
    const item = new vscode.TreeItem(
      row.amount,
      row.children.length > 0 ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.None,
    );
    item.id = row.id;
    item.description = describedRow(row);
    item.accessibilityInformation = { label: spokenRow(row) };
    item.iconPath = icon(row, this.by);
    item.contextValue = row.line === undefined ? "group" : "line";
    item.tooltip = new vscode.MarkdownString().appendText(wholeRow(row));
    if (row.gone !== undefined) {
      item.tooltip = goneTooltip(row.gone);
      item.command = { command: "deepscope.open", title: "Open", arguments: [row] };
    }
    if (row.line !== undefined) {
      item.tooltip = lineTooltip(row.line, this.lines?.stepWords ?? "");
      item.command = { command: "deepscope.open", title: "Open", arguments: [row] };
    }
    if ((row.line ?? row.gone)?.uri === null) {
      dim(item);
    }
    return item;
  }

  async chooseGroup(): Promise<void> {
    const choice = await pick(GROUPS, GROUP_WORDS, this.by, "Group hot lines by");
    await this.set(STATE_BY, choice);
  }

  async chooseMetric(): Promise<void> {
    const choice = await pick(METRICS, METRIC_WORDS, this.metric, "Sort hot lines by");
    await this.set(STATE_METRIC, choice);
  }

  async hide(row: Row): Promise<void> {
    await this.set(STATE_HIDDEN, [...this.hidden, row.id]);
  }

  async showHidden(): Promise<void> {
    await this.set(STATE_HIDDEN, []);
  }

  async copy(row: Row): Promise<void> {
    await vscode.env.clipboard.writeText(copyText(row));
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions, this.changed, this.view).dispose();
  }

  private async ask(why: "changed" | "moved"): Promise<void> {
    const generation = (this.generation += 1);
    this.isStale = false;
    let [lines, modules]: [HotLines | undefined, HotModules | undefined] = [undefined, undefined];
    if (this.session.status?.trace != null) {
      try {
        [lines, modules] = await Promise.all([this.requests.hotLines(), this.requests.modules()]);
      } catch (error) {
        this.log.error(`Hot Lines: ${String(error)}`);
      }
    }
    // Most edits move no line of a trace: its rows stay as they are.
    const isSame = why === "moved" && isDeepStrictEqual([lines, modules], [this.lines, this.modules]);
    if (generation === this.generation && !isSame) {
      [this.lines, this.modules] = [lines, modules];
      this.draw();
      if (this.isBehindCursor) {
        await this.followCursor();
      }
    }
  }

  /** Selects the row of the line that the cursor is on; the focus stays where it is. */
  private async followCursor(): Promise<void> {
    const place = cursorPlace();
    const row = place === undefined || !this.view.visible ? undefined : pathTo(this.rows(), place.uri, place.line).at(-1);
    this.isBehindCursor = row === undefined;
    if (row !== undefined && this.view.selection[0]?.id !== row.id) {
      await Promise.resolve(this.view.reveal(row, { select: true, focus: false })).catch((error: unknown) => this.log.debug(`Hot Lines: ${String(error)}`));
    }
  }

  private get by(): GroupBy {
    return GROUPS.find((by) => by === this.state.get(STATE_BY)) ?? "line";
  }

  private get metric(): HotMetric {
    return METRICS.find((metric) => metric === this.state.get(STATE_METRIC)) ?? "cost";
  }

  private get hidden(): string[] {
    return this.state.get<string[]>(STATE_HIDDEN, []);
  }

  private async set(key: string, value: unknown): Promise<void> {
    if (value !== undefined) {
      await this.state.update(key, value);
      this.draw();
    }
  }

  private rows(): Row[] {
    const options = { by: this.by, metric: this.metric, hidden: new Set(this.hidden) };
    if (this.by === "module") {
      return moduleRows(this.modules?.modules ?? [], options);
    }
    if (this.lines === undefined) {
      return [];
    }
    const rows = lineRows(this.lines, options);
    const hasVanished = this.by === "line" && this.metric === "cost";
    return hasVanished ? [...rows, ...vanishedRows(this.lines, options.hidden)] : rows;
  }

  private draw(): void {
    const trace = this.session.status?.trace;
    const shown = this.by === "module" && this.metric === "cost" ? "device" : this.metric;
    const metric = shown === "device" && trace?.metric === "cpu_self" ? "Operators' CPU time" : METRIC_WORDS[shown];
    const { status } = this.session;
    const words = [status === undefined ? "" : stepTimeWords(status), `${metric} ${this.lines?.stepWords ?? ""}`];
    this.view.description = trace == null ? "" : words.filter((word) => word !== "").join(" · ");
    this.changed.fire(undefined);
    this.tellShown();
  }

  /** Ticks a step of the walkthrough once somebody sees lines. */
  private tellShown(): void {
    if (this.view.visible && (this.lines?.lines.length ?? 0) > 0) {
      void vscode.commands.executeCommand("setContext", "deepscope.hasShownLines", true);
    }
  }
}

function icon(row: Row, by: GroupBy): vscode.ThemeIcon {
  const name = row.gone !== undefined || row.id === "gone" ? "diff-removed" : row.line !== undefined ? "flame" : by === "file" ? "file-code" : by === "module" ? "symbol-class" : "symbol-method";
  return new vscode.ThemeIcon(name, new vscode.ThemeColor(`deepscope.heat${levelOf(row.share)}`));
}

function lineTooltip(line: HotLine, stepWords: string): vscode.MarkdownString {
  const tooltip = begun(line);
  tooltip.appendText(`${line.label} (${stepWords})\n\n`);
  if (line.baselineWords !== "") {
    tooltip.appendText(`Cost in the baseline: ${line.baselineWords}\n\n`);
  }
  tooltip.appendText(`Over the whole trace: ${line.wholeWords}`);
  if (!line.exact) {
    tooltip.appendText("\n\nThe numbers are those of the whole function, or loop, that begins here.");
  }
  if (line.standing !== "same") {
    tooltip.appendText(line.standing === "gone" ? "\n\nThis line was deleted since." : "\n\nThis line was edited since.");
  }
  if (line.uri === null) {
    tooltip.appendText("\n\nThis file was not found here.");
  }
  return tooltip;
}

function goneTooltip(line: VanishedLine): vscode.MarkdownString {
  return begun(line).appendText(`${line.timeWords}; gone, or without a cost now.`);
}

/** The line's name and text. */
function begun(line: HotLine | VanishedLine): vscode.MarkdownString {
  const tooltip = new vscode.MarkdownString();
  tooltip.appendText(`${line.function} — ${line.file}:${line.line}\n\n`);
  return line.text === "" ? tooltip : tooltip.appendCodeblock(line.text, "python");
}
