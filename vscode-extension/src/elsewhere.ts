/** Files that are not on this machine: their rows are dimmed, their texts shown as they ran, from the trace itself. */

import * as vscode from "vscode";
import type { Place } from "./places";
import type { RecordedLine } from "./server/contract";
import type { Requests } from "./server/requests";
import { baseName } from "./paths";

/** Of the rows of views, and of recorded texts. */
const [DIMMED, RECORDED] = ["deepscope-elsewhere", "deepscope-recorded"];

export class Elsewhere implements vscode.FileDecorationProvider, vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly registrations = [vscode.window.registerFileDecorationProvider(this), vscode.workspace.registerTextDocumentContentProvider(RECORDED, this)];

  constructor(private readonly requests: Requests) {}

  provideFileDecoration(uri: vscode.Uri): vscode.FileDecoration | undefined {
    const colour = new vscode.ThemeColor("disabledForeground");
    return uri.scheme === DIMMED ? new vscode.FileDecoration(undefined, "This file was not found here", colour) : undefined;
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    return (await this.requests.recordedText(uri.query)) ?? "";
  }

  /** Shows a line as it ran; false where the trace has no text of its file. */
  async show({ file, line }: RecordedLine, options: { viewColumn?: vscode.ViewColumn }): Promise<boolean> {
    if ((await this.requests.recordedText(file)) === null) {
      return false;
    }
    // The recorded path is the query, since it may be of any system; what a tab shows is its last part.
    const uri = vscode.Uri.from({ scheme: RECORDED, path: `/as recorded/${baseName(file)}`, query: file });
    const document = await vscode.workspace.openTextDocument(uri);
    const start = new vscode.Position(Math.min(Math.max(0, line - 1), document.lineCount - 1), 0);
    await vscode.window.showTextDocument(document, { ...options, preview: true, selection: new vscode.Range(start, start) });
    return true;
  }

  dispose(): void {
    vscode.Disposable.from(...this.registrations).dispose();
  }
}

/** Marks a row whose file is not on this machine. */
export function dim(item: vscode.TreeItem): void {
  item.resourceUri = vscode.Uri.from({ scheme: DIMMED, path: "/" });
}

/** The recorded line at a place in an editor; undefined for one that did not run. */
export async function recordedAt(place: Place, requests: Requests): Promise<RecordedLine | undefined> {
  const { scheme, query } = vscode.Uri.parse(place.uri);
  return scheme === RECORDED ? { file: query, line: place.line } : ((await requests.recordedLine(place)) ?? undefined);
}
