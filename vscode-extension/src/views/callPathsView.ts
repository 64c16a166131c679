/** The Call Paths view: callers above and callees below the line that was chosen. */

import * as vscode from "vscode";
import { cursorPlace } from "../places";
import type { CallPaths } from "../server/contract";
import type { Requests } from "../server/requests";
import type { Session } from "../session";
import { duration } from "../units";
import { callPathRows, type CallPathRows, type LineKey, type PathRow } from "./callPathRows";

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
  private key: LineKey | undefined;
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

  /** Forgets the numbers: they are asked for when they are next looked at. */
  refresh(): void {
    this.paths = undefined;
    void this.show(this.key);
  }

  /** Shows a line's callers and callees; nothing where it has none. */
  async show(key: LineKey | undefined): Promise<void> {
    this.key = key;
    if (key === undefined || this.session.status?.trace == null || !this.view.visible) {
      this.draw(undefined, "");
      return;
    }
    try {
      this.paths ??= await this.requests.callPaths();
    } catch (error) {
      this.log.error(`Call Paths: ${String(error)}`);
      return;
    }
    const rows = callPathRows(this.paths.roots, key);
    const isEmpty = rows.callers.length === 0 && rows.callees.length === 0;
    this.draw(isEmpty ? undefined : rows, isEmpty ? "" : `line ${key.line}`);
  }

  /** Brings the view to the front with a line. */
  async reveal(key: LineKey): Promise<void> {
    await vscode.commands.executeCommand("deepscope.callPaths.focus");
    await this.show(key);
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
    item.description = `${duration(node.ns)}  ${fileName(path.file)}:${path.currentLine ?? path.line}`;
    item.contextValue = path.uri === null ? "nowhere" : "line";
    if (path.uri !== null) {
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
    this.timer = setTimeout(() => {
      const place = cursorPlace();
      const isSame = place?.uri === this.key?.uri && place?.line === this.key?.line && this.rows !== undefined;
      if (place !== undefined && !isSame && this.view.visible) {
        void this.show(place);
      }
    }, CURSOR_DELAY_MS);
  }

  private draw(rows: CallPathRows | undefined, description: string): void {
    this.rows = rows;
    this.view.description = description;
    this.changed.fire(undefined);
  }
}

function fileName(file: string): string {
  return file.split(/[/\\]/).at(-1) ?? file;
}
