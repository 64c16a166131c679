/** The way from a line's hover to the dashboard and to an assistant. */

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { canAsk } from "../assistant";
import { commandLink } from "./links";

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
