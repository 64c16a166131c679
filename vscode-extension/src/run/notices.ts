/** Tells when a new trace is shown that nobody asked for: a run has ended. */

import * as vscode from "vscode";
import { notify } from "../notify";
import { openPlace } from "../places";
import type { Status } from "../server/contract";
import type { Requests } from "../server/requests";
import { noticeWords } from "./noticeWords";

export class Notices {
  /** Of the trace last shown; "" when there was none; undefined before the first word of the server. */
  private shown: string | undefined;
  private isExpected = false;

  constructor(
    private readonly requests: Requests,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** The next change is the user's own doing and needs no notice. */
  expectChange(): void {
    this.isExpected = true;
  }

  async follow(status: Status | undefined): Promise<void> {
    const trace = status?.trace ?? undefined;
    const path = trace?.paths.join("\n") ?? "";
    if (status === undefined || path === this.shown) {
      return;
    }
    const isNews = this.shown !== undefined && trace !== undefined && !this.isExpected;
    this.shown = path;
    this.isExpected = false;
    if (!isNews || !vscode.workspace.getConfiguration("deepscope").get<boolean>("notifyNewTrace", true)) {
      return;
    }
    try {
      const [hottest] = (await this.requests.hotLines(1)).lines;
      const choice = await notify("info", noticeWords(trace, hottest), "Show", "Dashboard");
      if (choice === "Dashboard") {
        await vscode.commands.executeCommand("deepscope.openDashboard");
      } else if (choice === "Show" && hottest?.uri != null) {
        await openPlace({ uri: hottest.uri, line: hottest.currentLine ?? hottest.line });
      } else if (choice === "Show") {
        await vscode.commands.executeCommand("deepscope.hotLines.focus");
      }
    } catch (error) {
      this.log.error(`notice of a new trace: ${String(error)}`);
    }
  }
}
