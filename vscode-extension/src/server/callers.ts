/** Callers of a line as a choice; the server's own question is answered with VS Code's picker. */

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { notify } from "../notify";
import type { Jumps } from "../jumps";
import { readOr } from "../shape";
import { plain } from "../status/words";
import { commands, recordedLine, type Caller } from "./contract";
import type { Requests } from "./requests";

/** Code actions and lenses of the server show callers by a command; here it opens the picker. */
export function callersMiddleware(requests: () => Requests, jumps: () => Jumps): Middleware {
  return {
    executeCommand: async (command, args: unknown[], next): Promise<unknown> => {
      const wanted = command === commands.showCallers.name ? readOr(recordedLine, args[0]) : undefined;
      return wanted === undefined ? next(command, args) : pickCaller(await requests().callers(wanted), jumps());
    },
  };
}

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
