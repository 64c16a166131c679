/** Tells that recorded lines may stand elsewhere than they did, once the typing has stopped for a moment. */

import * as vscode from "vscode";

const QUIET_MS = 300;

export class Edits implements vscode.Disposable {
  private readonly settled = new vscode.EventEmitter<void>();
  readonly onSettled = this.settled.event;
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  constructor() {
    const texts = ({ languageId }: vscode.TextDocument): void => {
      if (languageId === "python") {
        this.soon();
      }
    };
    // Files that are not open change too: a checkout of another branch moves their lines.
    const files = vscode.workspace.createFileSystemWatcher("**/*.py");
    const changed = (): void => this.soon();
    this.subscriptions = [
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0) {
          texts(document);
        }
      }),
      vscode.workspace.onDidOpenTextDocument(texts),
      vscode.workspace.onDidCloseTextDocument(texts),
      files,
      files.onDidChange(changed),
      files.onDidCreate(changed),
      files.onDidDelete(changed),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions, this.settled).dispose();
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.settled.fire(), QUIET_MS);
  }
}
