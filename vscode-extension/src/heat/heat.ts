/** Draws heat: a mark at the gutter, a bar at the line's end as wide as its share, marks in the overview ruler. */

import * as vscode from "vscode";
import { lineRange } from "../places";
import type { AnnotatedLine } from "../server/contract";
import type { Requests } from "../server/requests";
import { barWidth, levelOf, LEVELS, markWidth, type Level } from "./levels";

const AFTER_EDIT_MS = 150;

export class Heat implements vscode.Disposable {
  private readonly marks = new Map<Level, vscode.TextEditorDecorationType>(LEVELS.map((level) => [level, markType(level)]));
  private readonly bars = vscode.window.createTextEditorDecorationType({ rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed });
  private readonly editedEmitter = new vscode.EventEmitter<boolean>();
  /** Whether the file in the active editor has measured lines that were edited since. */
  readonly onEdited = this.editedEmitter.event;
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  private isOn = false;
  private generation = 0;

  constructor(
    private readonly requests: Requests,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.subscriptions = [
      vscode.window.onDidChangeVisibleTextEditors(() => this.refreshSoon(0)),
      vscode.window.onDidChangeActiveTextEditor(() => this.refreshSoon(0)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (isMeasurable(document)) {
          this.refreshSoon(AFTER_EDIT_MS);
        }
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("deepscope")) {
          this.refreshSoon(AFTER_EDIT_MS);
        }
      }),
    ];
  }

  /** Draws while there is a trace, and removes everything when there is none. */
  setOn(isOn: boolean): void {
    this.isOn = isOn;
    this.refreshSoon(0);
  }

  refreshSoon(delayMs: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.refresh(), delayMs);
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions, ...this.marks.values(), this.bars, this.editedEmitter).dispose();
  }

  private async refresh(): Promise<void> {
    const generation = (this.generation += 1);
    for (const editor of vscode.window.visibleTextEditors) {
      if (isMeasurable(editor.document)) {
        await this.draw(editor, generation);
      }
    }
  }

  private async draw(editor: vscode.TextEditor, generation: number): Promise<void> {
    const { document } = editor;
    const settings = vscode.workspace.getConfiguration("deepscope", document);
    const version = document.version;
    let lines: readonly AnnotatedLine[] = [];
    if (this.isOn) {
      try {
        lines = await this.requests.annotations(document.uri.toString());
      } catch (error) {
        this.log.debug(`heat of ${document.uri.fsPath}: ${String(error)}`);
        return;
      }
    }
    if (document.version !== version || generation !== this.generation) {
      return; // a later refresh draws, or an edit has asked for one
    }
    if (editor === vscode.window.activeTextEditor) {
      this.editedEmitter.fire(lines.some((line) => line.mark !== ""));
    }
    const threshold = settings.get("threshold", 0.01);
    const hot = settings.get<boolean>("heat", true) ? lines.filter((line) => line.share >= threshold && line.share > 0) : [];
    for (const [level, type] of this.marks) {
      const warm = hot.filter((line) => levelOf(line.share) === level);
      editor.setDecorations(type, warm.flatMap(({ line }) => lineRange(document, line) ?? []));
    }
    editor.setDecorations(this.bars, hot.flatMap((line) => bar(document, line)));
  }
}

function isMeasurable(document: vscode.TextDocument): boolean {
  return document.languageId === "python" && (document.uri.scheme === "file" || document.uri.scheme === "vscode-notebook-cell");
}

function bar(document: vscode.TextDocument, { line, share }: AnnotatedLine): vscode.DecorationOptions[] {
  const range = lineRange(document, line);
  const after = {
    contentText: "",
    width: `${barWidth(share)}px`,
    height: "0.7em",
    margin: "0 0.6em 0 1.5em",
    backgroundColor: colourOf(levelOf(share)),
  };
  return range === undefined ? [] : [{ range, renderOptions: { after } }];
}

/**
 * The mark stands between the line's number and its text. It is no gutter icon: those share the margin with breakpoints, and
 * where a line has both VS Code widens the margin, which moves all the code.
 */
function markType(level: Level): vscode.TextEditorDecorationType {
  const colour = colourOf(level);
  return vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
    overviewRulerColor: colour,
    overviewRulerLane: vscode.OverviewRulerLane.Right,
    borderStyle: "solid",
    borderWidth: `0 0 0 ${markWidth(level)}px`,
    borderColor: colour,
  });
}

function colourOf(level: Level): vscode.ThemeColor {
  return new vscode.ThemeColor(`deepscope.heat${level}`);
}
