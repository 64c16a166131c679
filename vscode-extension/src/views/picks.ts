/** A choice among a few words, of which one holds. */

import * as vscode from "vscode";

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
