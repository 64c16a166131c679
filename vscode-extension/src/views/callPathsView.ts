/** The Call Paths view: callers above and callees below the line that was chosen, and what its work is made of. */

import * as vscode from "vscode";
import { DEPTH_WORDS, DEPTHS, keptDepth } from "../depths";
import { cursorPlace } from "../places";
import { dim, recordedAt } from "../elsewhere";
import type { Depth, LinePaths, RecordedLine } from "../server/contract";
import type { Requests } from "../server/requests";
import type { Session } from "../session";
import { describedPath, iconOf, opensPart, pathRows, pathParagraphs, type PathRow } from "./callPathRows";
import { pick } from "../notify";
import { placeName } from "../paths";

interface Section {
  readonly section: "callers" | "callees";
}
type Node = Section | PathRow;

const CURSOR_DELAY_MS = 250;
const STATE_DEPTH = "deepscope.callPaths.depth";
/** Kernels' names are long for a side bar. */
const DEFAULT_DEPTH: Depth = "operator";

export class CallPathsView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<Node>;
  private paths: LinePaths | undefined;
  /** The line that is shown, as it was recorded: edits do not change it. */
  private line: RecordedLine | undefined;
  /** The cursor went from a row into code that was not measured: what is shown stays until it is at a measured line. */
  private isHeld = false;
  private generation = 0;
  /** Counts where the cursor went, and the lines that were chosen otherwise: the last one is shown. */
  private moves = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly state: vscode.Memento,
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
    if (line !== this.line) {
      this.moves += 1;
      this.isHeld = false;
    }
    this.line = line;
    if (line === undefined || this.session.status?.trace == null || !this.view.visible) {
      this.draw(undefined, "");
      return;
    }
    let paths: LinePaths;
    try {
      paths = await this.requests.linePaths(line, this.depth);
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

  /** Keeps what is shown while code is opened that a row stands for and that was not measured. */
  hold(): void {
    this.isHeld = true;
  }

  async chooseDepth(): Promise<void> {
    const chosen = await pick(DEPTHS, DEPTH_WORDS, this.depth, "Show call paths down to");
    if (chosen !== undefined) {
      await this.state.update(STATE_DEPTH, chosen);
      this.refresh();
    }
  }

  getChildren(node?: Node): Node[] {
    if (node === undefined) {
      const sections: Section[] = [{ section: "callers" }, { section: "callees" }];
      return sections.filter(({ section }) => (this.paths?.[section].length ?? 0) > 0);
    }
    if (!("section" in node)) {
      return [...node.children];
    }
    const owner = node.section === "callees" ? (this.paths?.line ?? undefined) : undefined;
    return pathRows(this.paths?.[node.section] ?? [], node.section, owner && { file: owner.file, line: owner.line });
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if ("section" in node) {
      const label = node.section === "callers" ? "Called from" : "Calls";
      const item = new vscode.TreeItem(label, vscode.TreeItemCollapsibleState.Expanded);
      item.iconPath = new vscode.ThemeIcon(node.section === "callers" ? "call-incoming" : "call-outgoing");
      return item;
    }
    const { path } = node;
    const states = vscode.TreeItemCollapsibleState;
    const state = node.children.length === 0 ? states.None : node.isOpen ? states.Expanded : states.Collapsed;
    const item = new vscode.TreeItem(path.name, state);
    const paragraphs = pathParagraphs(node, this.paths?.stepWords ?? "");
    item.id = node.id;
    item.description = describedPath(node);
    item.iconPath = new vscode.ThemeIcon(iconOf(node));
    item.tooltip = new vscode.MarkdownString().appendText(paragraphs.join("\n\n"));
    item.accessibilityInformation = { label: paragraphs.join(", ") };
    item.contextValue = path.kind === "line" ? "line" : "part";
    if (path.kind === "line" && path.uri === null) {
      dim(item);
    }
    if (node.opens !== undefined) {
      item.command = { command: "deepscope.open", title: "Open", arguments: [{ line: node.opens, isPart: opensPart(node) }] };
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
    const move = (this.moves += 1);
    const line = await recordedAt(place, this.requests).catch(() => undefined);
    const isKept = this.isHeld && (line === undefined || !(await this.isOnPath(line)));
    if (isKept || move !== this.moves) {
      return;
    }
    const isSame = line?.file === this.line?.file && line?.line === this.line?.line && this.paths !== undefined;
    if (!isSame) {
      await this.show(line);
    }
  }

  private async isOnPath(line: RecordedLine): Promise<boolean> {
    const paths = await this.requests.linePaths(line, this.depth).catch(() => undefined);
    return paths !== undefined && paths.callers.length + paths.callees.length > 0;
  }

  private get depth(): Depth {
    return keptDepth(this.state.get(STATE_DEPTH), DEFAULT_DEPTH);
  }

  private draw(paths: LinePaths | undefined, description: string): void {
    this.paths = paths;
    this.view.description = description;
    this.changed.fire(undefined);
  }
}
