/** The Call Paths view: callers above and callees below the line that was chosen. */

import * as vscode from "vscode";
import { cursorPlace } from "../places";
import { recordedAt } from "../recordedTexts";
import type { CallPaths, RecordedLine } from "../server/contract";
import type { Requests } from "../server/requests";
import type { Session } from "../session";
import { duration } from "../units";
import { callPathRows, type CallPathRows, type PathRow } from "./callPathRows";
import { dim } from "./elsewhere";
import { placeName, shortPlace } from "./placeNames";
import { scaleOf, type Scale } from "./scale";

interface Section {
  readonly section: "callers" | "callees";
}
type Node = Section | PathRow;

const CURSOR_DELAY_MS = 250;

export class CallPathsView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<Node>;
  private paths: CallPaths | undefined;
  private rows: CallPathRows | undefined;
  /** The line that is shown, as it was recorded: edits do not change it. */
  private line: RecordedLine | undefined;
  private generation = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly session: Session,
    private readonly requests: Requests,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.view = vscode.window.createTreeView<Node>("deepscope.callPaths", { treeDataProvider: this });
    this.subscriptions = [
      vscode.window.onDidChangeTextEditorSelection(() => this.followCursorSoon()),
      this.view.onDidChangeVisibility(() => this.followCursorSoon()),
    ];
  }

  /** Forgets the numbers, and where lines stand: both are asked for when they are next looked at. */
  refresh(): void {
    this.paths = undefined;
    void this.show(this.line);
  }

  /** Shows a line's callers and callees; nothing where it has none. */
  async show(line: RecordedLine | undefined): Promise<void> {
    const generation = (this.generation += 1);
    this.line = line;
    if (line === undefined || this.session.status?.trace == null || !this.view.visible) {
      this.draw(undefined, "");
      return;
    }
    let paths: CallPaths;
    try {
      paths = this.paths ?? (await this.requests.callPaths());
    } catch (error) {
      this.log.error(`Call Paths: ${String(error)}`);
      return;
    }
    if (generation !== this.generation) {
      return; // another line was chosen meanwhile, or an edit has moved the lines
    }
    this.paths = paths;
    const rows = callPathRows(paths.roots, line);
    const isEmpty = rows.callers.length === 0 && rows.callees.length === 0;
    this.draw(isEmpty ? undefined : rows, isEmpty ? "" : `${placeName(rows.line ?? line)} · ${this.scale.words}`);
  }

  /** Brings the view to the front with a line. */
  async reveal(line: RecordedLine): Promise<void> {
    await vscode.commands.executeCommand("deepscope.callPaths.focus");
    await this.show(line);
  }

  getChildren(node?: Node): Node[] {
    if (node === undefined) {
      const sections: Section[] = [{ section: "callers" }, { section: "callees" }];
      return this.rows === undefined ? [] : sections.filter(({ section }) => (this.rows?.[section].length ?? 0) > 0);
    }
    return "section" in node ? [...(this.rows?.[node.section] ?? [])] : [...node.children];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if ("section" in node) {
      const label = node.section === "callers" ? "Called from" : "Calls";
      const item = new vscode.TreeItem(label, vscode.TreeItemCollapsibleState.Expanded);
      item.iconPath = new vscode.ThemeIcon(node.section === "callers" ? "call-incoming" : "call-outgoing");
      return item;
    }
    const { path } = node;
    const collapsed = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(path.function, node.children.length > 0 ? collapsed.Expanded : collapsed.None);
    item.id = node.id;
    item.description = `${duration(node.ns / this.scale.divisor)}  ${shortPlace(placeName(path))}`;
    item.tooltip = new vscode.MarkdownString().appendText(`${path.function} — ${path.file}:${path.currentLine ?? path.line}\n\n${duration(node.ns / this.scale.divisor)} ${this.scale.words}`);
    item.contextValue = "line";
    if (path.uri === null) {
      dim(item);
    }
    if (path.line > 0) {
      item.command = { command: "deepscope.open", title: "Open", arguments: [{ line: path }] };
    }
    return item;
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions, this.changed, this.view).dispose();
  }

  private get scale(): Scale {
    return scaleOf(this.session.status?.trace ?? undefined);
  }

  private followCursorSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.followCursor(), CURSOR_DELAY_MS);
  }

  private async followCursor(): Promise<void> {
    const place = cursorPlace();
    if (place === undefined || !this.view.visible || this.session.status?.trace == null) {
      return;
    }
    const line = await recordedAt(place, this.requests).catch(() => undefined);
    const isSame = line?.file === this.line?.file && line?.line === this.line?.line && this.rows !== undefined;
    if (!isSame) {
      await this.show(line);
    }
  }

  private draw(rows: CallPathRows | undefined, description: string): void {
    this.rows = rows;
    this.view.description = description;
    this.changed.fire(undefined);
  }
}
