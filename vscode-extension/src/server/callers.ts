/** Callers of a line as a choice in VS Code's picker. */

import * as vscode from "vscode";
import { notify } from "../notify";
import type { Jumps } from "../jumps";
import { plain } from "../status/words";
import type { Caller } from "./contract";

/** A choice among the callers of a line, and the way to the one that is chosen. */
export async function pickCaller(callers: readonly Caller[], jumps: Jumps): Promise<void> {
  if (callers.length === 0) {
    void notify("info", "DeepScope: no caller of this line was recorded.");
    return;
  }
  const items = callers.map((caller) => ({
    label: plain(caller.function),
    description: plain(`${caller.shortFile}:${caller.currentLine ?? caller.line}`),
    detail: caller.uri === null ? `${caller.label}, file not found here` : caller.label,
    caller,
  }));
  const chosen = await vscode.window.showQuickPick(items, { title: "Called from" });
  if (chosen !== undefined) {
    await jumps.open(chosen.caller);
  }
}
