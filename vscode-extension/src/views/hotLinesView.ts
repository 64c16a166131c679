/** The Hot Lines view. */

import * as vscode from "vscode";
import { levelOf } from "../heat/levels";
import type { HotLines, Modules, ShownTrace } from "../server/contract";
import type { Requests } from "../server/requests";
import type { Session } from "../session";
import { copyText, GROUPS, lineRows, METRICS, moduleRows, type GroupBy, type Metric, type Row } from "./hotLinesRows";
import { lineTooltip } from "./tooltips";

const STATE_BY = "deepscope.hotLines.by";
const STATE_METRIC = "deepscope.hotLines.metric";
const STATE_HIDDEN = "deepscope.hotLines.hidden";

const GROUP_WORDS: Readonly<Record<GroupBy, string>> = {
  line: "Lines",
  function: "Functions",
  file: "Files",
  module: "Modules of the model",
};
const METRIC_WORDS: Readonly<Record<Metric, string>> = {
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
  private modules: Modules | undefined;
  private generation = 0;

  constructor(
    private readonly state: vscode.Memento,
    private readonly session: Session,
    private readonly requests: Requests,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.view = vscode.window.createTreeView("deepscope.hotLines", { treeDataProvider: this, showCollapseAll: true });
  }

  /** Asks for the numbers anew, or shows none. */
  async refresh(): Promise<void> {
    const generation = (this.generation += 1);
    let [lines, modules]: [HotLines | undefined, Modules | undefined] = [undefined, undefined];
    if (this.session.status?.trace != null) {
      try {
        [lines, modules] = await Promise.all([this.requests.hotLines(), this.requests.modules()]);
      } catch (error) {
        this.log.error(`Hot Lines: ${String(error)}`);
      }
    }
    if (generation === this.generation) {
      [this.lines, this.modules] = [lines, modules];
      this.draw();
    }
  }

  getChildren(row?: Row): Row[] {
    return row === undefined ? this.rows() : [...row.children];
  }

  getTreeItem(row: Row): vscode.TreeItem {
    const item = new vscode.TreeItem(
      row.label,
      row.children.length > 0 ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.None,
    );
    item.id = row.id;
    item.description = row.description;
    item.iconPath = icon(row, this.by);
    item.contextValue = row.line === undefined ? "group" : "line";
    if (row.line !== undefined) {
      item.tooltip = lineTooltip(row.line, this.lines?.stepWords ?? "");
      item.command = { command: "deepscope.open", title: "Open", arguments: [row] };
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
    vscode.Disposable.from(this.changed, this.view).dispose();
  }

  private get by(): GroupBy {
    return GROUPS.find((by) => by === this.state.get(STATE_BY)) ?? "line";
  }

  private get metric(): Metric {
    return METRICS.find((metric) => metric === this.state.get(STATE_METRIC)) ?? "device";
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
    const options = {
      by: this.by,
      metric: this.metric,
      divisor: divisorOf(this.session.status?.trace ?? undefined),
      hidden: new Set(this.hidden),
    };
    if (this.by === "module") {
      return moduleRows(this.modules?.modules ?? [], options);
    }
    return lineRows(this.lines?.lines ?? [], options);
  }

  private draw(): void {
    const trace = this.session.status?.trace;
    const metric = this.metric === "device" && trace?.metric === "cpu_self" ? "Operators' CPU time" : METRIC_WORDS[this.metric];
    this.view.description = trace == null ? "" : `${metric} ${this.lines?.stepWords ?? ""}`;
    this.view.message =
      this.by === "module" && trace != null && this.modules === undefined
        ? "The language server cannot tell modules apart; it is older than this extension."
        : "";
    if (this.view.message === "") {
      delete (this.view as { message?: string }).message;
    }
    this.changed.fire(undefined);
  }
}

/** As the server: the mean over steps and ranks. */
function divisorOf(trace: ShownTrace | undefined): number {
  const steps = trace?.step === null ? Math.max(1, trace.steps) : 1;
  return steps * Math.max(1, trace?.ranks.length ?? 1);
}

function icon(row: Row, by: GroupBy): vscode.ThemeIcon {
  const name = row.line !== undefined ? "flame" : by === "file" ? "file-code" : by === "module" ? "symbol-class" : "symbol-method";
  return new vscode.ThemeIcon(name, new vscode.ThemeColor(`deepscope.heat${levelOf(row.share)}`));
}

async function pick<T extends string>(
  values: readonly T[],
  words: Readonly<Record<T, string>>,
  current: T,
  title: string,
): Promise<T | undefined> {
  const items = values.map((value) => ({ label: words[value], description: value === current ? "current" : "", value }));
  return (await vscode.window.showQuickPick(items, { title }))?.value;
}
