/** Draws heat: a mark in the gutter, a bar at the line's end as wide as its share, marks in the overview ruler. */

import * as vscode from "vscode";
import { lineRange } from "../places";
import type { Annotation } from "../server/contract";
import type { Requests } from "../server/requests";
import { barWidth, GUTTER_COLOURS, gutterSvg, levelOf, LEVELS, type Level } from "./levels";

const AFTER_EDIT_MS = 150;

export class Heat implements vscode.Disposable {
  private readonly types = new Map<Level, vscode.TextEditorDecorationType>(LEVELS.map((level) => [level, decorationType(level)]));
  private readonly editedEmitter = new vscode.EventEmitter<boolean>();
  /** Whether the file in the active editor has measured lines that were edited since. */
  readonly onEdited = this.editedEmitter.event;
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  private isOn = false;

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

  /** Draws when there is a trace, and takes all away when there is none. */
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
    vscode.Disposable.from(...this.subscriptions, ...this.types.values(), this.editedEmitter).dispose();
  }

  private async refresh(): Promise<void> {
    for (const editor of vscode.window.visibleTextEditors) {
      if (isMeasurable(editor.document)) {
        await this.draw(editor);
      }
    }
  }

  private async draw(editor: vscode.TextEditor): Promise<void> {
    const { document } = editor;
    const settings = vscode.workspace.getConfiguration("deepscope.heat", document);
    const version = document.version;
    let lines: Annotation[] = [];
    if (this.isOn) {
      try {
        lines = await this.requests.annotations(document.uri.toString());
      } catch (error) {
        this.log.debug(`heat of ${document.uri.fsPath}: ${String(error)}`);
        return;
      }
    }
    if (document.version !== version) {
      return; // an edit came in between; it has asked for a refresh of its own
    }
    if (editor === vscode.window.activeTextEditor) {
      this.editedEmitter.fire(lines.some((line) => line.mark !== ""));
    }
    const threshold = settings.get("threshold", 0.01);
    const hot = settings.get<boolean>("enabled", true) ? lines.filter((line) => line.share >= threshold && line.share > 0) : [];
    const withBars = settings.get<boolean>("bars", true);
    for (const [level, type] of this.types) {
      const options = hot
        .filter((line) => levelOf(line.share) === level)
        .flatMap((line) => decoration(document, line, level, withBars));
      editor.setDecorations(type, options);
    }
  }
}

function isMeasurable(document: vscode.TextDocument): boolean {
  return document.languageId === "python" && (document.uri.scheme === "file" || document.uri.scheme === "vscode-notebook-cell");
}

function decoration(document: vscode.TextDocument, line: Annotation, level: Level, withBars: boolean): vscode.DecorationOptions[] {
  const range = lineRange(document, line.line);
  if (range === undefined) {
    return [];
  }
  if (!withBars) {
    return [{ range }];
  }
  const width = barWidth(line.share);
  return [
    {
      range,
      renderOptions: {
        after: {
          contentText: "",
          width: `${width}px`,
          height: "0.7em",
          margin: "0 0.6em 0 1.5em",
          backgroundColor: new vscode.ThemeColor(`deepscope.heat${level}`),
        },
      },
    },
  ];
}

function decorationType(level: Level): vscode.TextEditorDecorationType {
  const colours = GUTTER_COLOURS[level];
  return vscode.window.createTextEditorDecorationType({
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
    overviewRulerColor: new vscode.ThemeColor(`deepscope.heat${level}`),
    overviewRulerLane: vscode.OverviewRulerLane.Right,
    gutterIconSize: "contain",
    dark: { gutterIconPath: svgUri(gutterSvg(level, colours.dark)) },
    light: { gutterIconPath: svgUri(gutterSvg(level, colours.light)) },
  });
}

function svgUri(svg: string): vscode.Uri {
  return vscode.Uri.parse(`data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`);
}
