/** Panels: their page, the mark on their tab, and where code goes that opens from one. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { page, type PageParts } from "./page";

/** The folder of the bundled scripts and styles of panels. */
export function assetsOf(extensionUri: vscode.Uri): vscode.Uri {
  return vscode.Uri.joinPath(extensionUri, "dist", "webviews");
}

/** The page around a bundled script and the style of the same name. */
export function pageOf(webview: vscode.Webview, extensionUri: vscode.Uri, bundle: string, parts: Omit<PageParts, "cspSource" | "script" | "style">): string {
  const asset = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(assetsOf(extensionUri), name)).toString();
  return page({ ...parts, cspSource: webview.cspSource, script: asset(`${bundle}.js`), style: asset(`${bundle}.css`) }, randomBytes(16).toString("hex"));
}

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
