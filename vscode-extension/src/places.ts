/** The one place that turns lines counted from 1 into VS Code's positions, and opens them. */

import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import { isBelowAny } from "./paths";
import { ask } from "./notify";

export interface Place {
  readonly uri: string;
  /** From 1. */
  readonly line: number;
}

/** Files outside the workspace that the user let be opened. */
const allowed = new Set<string>();

/**
 * Opens a file at a line in the middle of the editor, the cursor on the line's first character.
 *
 * Places come from traces, which anyone may have written: a file outside the workspace is opened only after asking.
 */
export async function openPlace(place: Place, options: { viewColumn?: vscode.ViewColumn } = {}): Promise<void> {
  const named = vscode.Uri.parse(place.uri, true);
  const uri = named.with({ path: path.posix.normalize(named.path) });
  if (!isReadable(uri) || !(await mayOpen(uri))) {
    return;
  }
  const document = await vscode.workspace.openTextDocument(uri);
  const line = Math.min(Math.max(0, place.line - 1), document.lineCount - 1);
  const position = new vscode.Position(line, document.lineAt(line).firstNonWhitespaceCharacterIndex);
  await vscode.window.showTextDocument(document, { viewColumn: options.viewColumn ?? columnFor(uri), selection: new vscode.Range(position, position) });
}

/** The place of the cursor in a Python editor. */
export function cursorPlace(): Place | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== "python") {
    return undefined;
  }
  return { uri: editor.document.uri.toString(), line: editor.selection.active.line + 1 };
}

/** The whole of a line, for a decoration. */
export function lineRange(document: vscode.TextDocument, line: number): vscode.Range | undefined {
  return line >= 1 && line <= document.lineCount ? document.lineAt(line - 1).range : undefined;
}

/** Where the file is shown already; else a group that does not show a panel of ours. */
function columnFor(uri: vscode.Uri): vscode.ViewColumn {
  const shown = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.toString() === uri.toString());
  const { activeTabGroup, all } = vscode.window.tabGroups;
  const isPanel = activeTabGroup.activeTab?.input instanceof vscode.TabInputWebview;
  const other = isPanel ? all.find((group) => group !== activeTabGroup) : undefined;
  return shown?.viewColumn ?? other?.viewColumn ?? vscode.ViewColumn.Active;
}

function isReadable(uri: vscode.Uri): boolean {
  return uri.scheme === "file" ? uri.authority === "" : uri.scheme === "vscode-notebook-cell";
}

/** Whether the file itself, all links resolved, lies in a folder of the workspace. */
async function isInWorkspace(uri: vscode.Uri): Promise<boolean> {
  if (uri.scheme !== "file") {
    return vscode.workspace.getWorkspaceFolder(uri) !== undefined;
  }
  const folders = (vscode.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === "file");
  const [file, ...roots] = await Promise.all([uri.fsPath, ...folders.map((folder) => folder.uri.fsPath)].map(realPath));
  return file !== undefined && isBelowAny(file, roots);
}

/** Links resolved; the path itself where there is nothing. */
async function realPath(file: string): Promise<string> {
  return fs.promises.realpath(file).catch(() => file);
}

async function mayOpen(uri: vscode.Uri): Promise<boolean> {
  const key = uri.toString();
  const isOpen = vscode.workspace.textDocuments.some((document) => document.uri.toString() === key);
  if (isOpen || allowed.has(key) || (await isInWorkspace(uri))) {
    return true;
  }
  const choice = await ask("The trace names a file outside this workspace. Open it?", uri.fsPath, "Open");
  if (choice === "Open") {
    allowed.add(key);
  }
  return choice === "Open";
}
