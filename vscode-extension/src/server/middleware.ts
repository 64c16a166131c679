/** The server's own questions, asked by commands of its code actions and lenses, as VS Code asks them. */

import type { Middleware } from "vscode-languageclient/node";
import type { Jumps } from "../jumps";
import type { Runner } from "../run/runner";
import { object, readOr, text, withDefault } from "../shape";
import { pickCaller } from "./callers";
import { commands, recordedLine } from "./contract";
import type { Requests } from "./requests";

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
