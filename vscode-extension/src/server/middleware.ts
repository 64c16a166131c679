/** What comes between the server and VS Code: its questions, asked as VS Code asks them, and links below its hovers. */

import type { Middleware } from "vscode-languageclient/node";
import type { Jumps } from "../jumps";
import type { Runner } from "../run/runner";
import { object, readOr, text, withDefault } from "../shape";
import { commands, recordedLine, type Caller } from "./contract";
import type { Requests } from "./requests";
import * as vscode from "vscode";
import { notify } from "../notify";
import { plain } from "../status/words";
import { canAsk } from "../assistant";
import { commandLink } from "../dashboard/links";

const tried = object({ code: text, root: withDefault(text, "") });

export function commandsMiddleware(requests: () => Requests, jumps: () => Jumps, runner: () => Runner): Middleware {
  return {
    executeCommand: async (command, args: unknown[], next): Promise<unknown> => {
      const line = command === commands.showCallers.name ? readOr(recordedLine, args[0]) : undefined;
      if (line !== undefined) {
        return pickCaller(await requests().callers(line), jumps());
      }
      const finding = command === commands.showTryCommand.name ? readOr(tried, args[0]) : undefined;
      if (finding !== undefined) {
        const { code, root } = finding;
        return runner().tryFinding(await requests().tryCommand(root === "" ? { code } : { code, root }));
      }
      return next(command, args);
    },
  };
}

/** A choice among the callers of a line, and the way to the one that is chosen. */
async function pickCaller(callers: readonly Caller[], jumps: Jumps): Promise<void> {
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

const COMMANDS = ["deepscope.showInDashboard", "deepscope.showInTimeline", "deepscope.askAboutLine"];

/** Adds links to the server's hovers. What the server says stays untrusted: the links are made of our own words alone. */
export const dashboardMiddleware: Middleware = {
  provideHover: async (document, position, token, next) => {
    const hover = await next(document, position, token);
    if (hover != null && vscode.workspace.isTrusted) {
      const place = { uri: document.uri.toString(), line: position.line + 1 };
      const links = [commandLink("Show in Dashboard", "deepscope.showInDashboard", place), commandLink("Timeline", "deepscope.showInTimeline", place)];
      if (await canAsk()) {
        links.push(commandLink("Ask", "deepscope.askAboutLine", place));
      }
      const words = new vscode.MarkdownString(links.join(" · "));
      words.isTrusted = { enabledCommands: COMMANDS };
      hover.contents.push(words);
    }
    return hover;
  },
};
