/** The tabs of panels: their mark, and where code goes that opens from one. */

import * as vscode from "vscode";

/** A column for code that leaves a panel in sight: one with a text editor, else the one beside it. */
export function besideOf(panel: vscode.WebviewPanel | undefined): vscode.ViewColumn {
  const other = vscode.window.tabGroups.all.find((group) => group.viewColumn !== panel?.viewColumn);
  return other?.viewColumn ?? vscode.ViewColumn.Beside;
}

/** The mark on the tab of a panel, which takes no colour of the theme's. */
export function tabIcon(extensionUri: vscode.Uri): { light: vscode.Uri; dark: vscode.Uri } {
  const named = (name: string): vscode.Uri => vscode.Uri.joinPath(extensionUri, "media", name);
  return { light: named("tab-light.svg"), dark: named("tab-dark.svg") };
}
