/** The one place that shows messages, dialogs and choices: names in them come from traces, so that no link is made from them. */

import * as vscode from "vscode";
import { unlinked } from "./status/words";

export type Kind = "info" | "warning" | "error";

const SHOW = {
  info: vscode.window.showInformationMessage,
  warning: vscode.window.showWarningMessage,
  error: vscode.window.showErrorMessage,
} as const;

/** Shows a message with buttons; answers the one that was pressed. */
export function notify<T extends string>(kind: Kind, message: string, ...buttons: readonly T[]): Promise<T | undefined> {
  return Promise.resolve(SHOW[kind]<T>(unlinked(message), ...buttons));
}

/** The same as a dialog that waits for an answer. */
export function ask<T extends string>(message: string, detail: string, ...buttons: readonly T[]): Promise<T | undefined> {
  return Promise.resolve(vscode.window.showWarningMessage<T>(unlinked(message), { modal: true, detail: unlinked(detail) }, ...buttons));
}

/** The chosen value; undefined where none was. */
export async function pick<T extends string>(
  values: readonly T[],
  words: Readonly<Record<T, string>>,
  current: T,
  title: string,
): Promise<T | undefined> {
  const items = values.map((value) => ({ label: words[value], description: value === current ? "current" : "", value }));
  return (await vscode.window.showQuickPick(items, { title }))?.value;
}
