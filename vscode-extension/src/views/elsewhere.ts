/** Dims the rows of lines whose files are not on this machine. */

import * as vscode from "vscode";

const SCHEME = "deepscope-elsewhere";

export class ElsewhereRows implements vscode.FileDecorationProvider, vscode.Disposable {
  private readonly registration = vscode.window.registerFileDecorationProvider(this);

  provideFileDecoration(uri: vscode.Uri): vscode.FileDecoration | undefined {
    const colour = new vscode.ThemeColor("disabledForeground");
    return uri.scheme === SCHEME ? new vscode.FileDecoration(undefined, "This file was not found here", colour) : undefined;
  }

  dispose(): void {
    this.registration.dispose();
  }
}

/** Marks a row whose file is not on this machine. */
export function dim(item: vscode.TreeItem): void {
  item.resourceUri = vscode.Uri.from({ scheme: SCHEME, path: "/" });
}
