/** Tells when a new trace is shown that nobody asked for: a run has ended. */

import * as vscode from "vscode";
import { notify } from "../notify";
import type { Jumps } from "../jumps";
import type { Status } from "../server/contract";
import type { Requests } from "../server/requests";
import { noticeWords } from "../status/words";

export class Notices {
  /** The trace last shown; "" when there was none; undefined before the server has said anything. */
  private shown: string | undefined;
  private isExpected = false;
  /** The newer run of somebody else's code that the user was told of. */
  private newer: string | undefined;

  constructor(
    private readonly requests: Requests,
    private readonly jumps: Jumps,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** The next change is the user's own doing and needs no notice. */
  expectChange(): void {
    this.isExpected = true;
  }

  async follow(status: Status | undefined): Promise<void> {
    this.followNewer(status);
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
      const choice = await notify("info", noticeWords(trace, status), "Show", "Dashboard");
      if (choice === "Dashboard") {
        await vscode.commands.executeCommand("deepscope.openDashboard");
      } else if (choice === "Show" && hottest?.uri != null) {
        await this.jumps.open(hottest);
      } else if (choice === "Show") {
        await vscode.commands.executeCommand("deepscope.hotLines.focus");
      }
    } catch (error) {
      this.log.error(`notice of a new trace: ${String(error)}`);
    }
  }

  /** A run of code that is not here does not take the place of the user's own; it is offered. */
  private followNewer(status: Status | undefined): void {
    const newer = status?.newer?.path ?? "";
    const isNews = this.newer !== undefined && newer !== "" && newer !== this.newer;
    if (status !== undefined) {
      this.newer = newer;
    }
    if (isNews) {
      void this.offer(newer).catch((error: unknown) => this.log.error(`notice of a newer trace: ${String(error)}`));
    }
  }

  private async offer(newer: string): Promise<void> {
    const choice = await notify("info", `DeepScope: ${newer} is newer, and no code of it is here: your own run stays.`, "Show It");
    if (choice !== undefined) {
      await vscode.commands.executeCommand("deepscope.pickTrace", newer);
    }
  }
}
