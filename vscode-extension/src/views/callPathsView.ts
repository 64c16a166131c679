/** The Call Paths view: callers above and callees below the line that was chosen. */

import * as vscode from "vscode";
import { cursorPlace } from "../places";
import { recordedAt } from "../recordedTexts";
import type { LinePaths, RecordedLine } from "../server/contract";
import type { Requests } from "../server/requests";
import type { Session } from "../session";
import { pathRows, type PathRow } from "./callPathRows";
import { dim } from "./elsewhere";
import { placeName, shortPlace } from "./placeNames";

interface Section {
  readonly section: "callers" | "callees";
}
type Node = Section | PathRow;

const CURSOR_DELAY_MS = 250;

export class CallPathsView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<Node>;
  private paths: LinePaths | undefined;
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

  /** Asks anew: the numbers may be others, and lines may have moved. */
  refresh(): void {
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
    let paths: LinePaths;
    try {
      paths = await this.requests.linePaths(line);
    } catch (error) {
      this.log.error(`Call Paths: ${String(error)}`);
      return;
    }
    if (generation !== this.generation) {
      return; // another line was chosen meanwhile, or an edit has moved the lines
    }
    const isEmpty = paths.callers.length === 0 && paths.callees.length === 0;
    this.draw(isEmpty ? undefined : paths, isEmpty ? "" : `${placeName(paths.line ?? line)} · ${paths.stepWords}`);
  }

  /** Brings the view to the front with a line. */
  async reveal(line: RecordedLine): Promise<void> {
    await vscode.commands.executeCommand("deepscope.callPaths.focus");
    await this.show(line);
  }

  getChildren(node?: Node): Node[] {
    if (node === undefined) {
      const sections: Section[] = [{ section: "callers" }, { section: "callees" }];
      return sections.filter(({ section }) => (this.paths?.[section].length ?? 0) > 0);
    }
    return "section" in node ? pathRows(this.paths?.[node.section] ?? [], node.section) : [...node.children];
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
    item.description = `${path.timeWords}  ${shortPlace(placeName(path))}`;
    const place = `${path.function} — ${path.file}:${path.currentLine ?? path.line}`;
    item.tooltip = new vscode.MarkdownString().appendText(`${place}\n\n${path.timeWords} ${this.paths?.stepWords ?? ""}`);
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
    const isSame = line?.file === this.line?.file && line?.line === this.line?.line && this.paths !== undefined;
    if (!isSame) {
      await this.show(line);
    }
  }

  private draw(paths: LinePaths | undefined, description: string): void {
    this.paths = paths;
    this.view.description = description;
    this.changed.fire(undefined);
  }
}
