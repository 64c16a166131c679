/** The item in the status bar: which trace, on what device, how old; a click opens the picker. */

import * as vscode from "vscode";
import type { Status } from "../server/contract";
import { statusWords, type Standing } from "./words";

const AGE_REFRESH_MS = 60_000;
/** What a click does where there is no trace to choose. */
const COMMANDS: Partial<Record<Standing, string>> = {
  failed: "deepscope.showLogs",
  off: "deepscope.showLogs",
  missing: "deepscope.selectInterpreter",
  restricted: "workbench.trust.manage",
};

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("deepscope.status", vscode.StatusBarAlignment.Left, 10);
  private readonly timer = setInterval(() => this.draw(), AGE_REFRESH_MS);
  private standing: Standing = "off";
  private status: Status | undefined;
  private edited = false;

  constructor() {
    this.item.name = "DeepScope";
    this.draw();
    this.item.show();
  }

  show(standing: Standing, status: Status | undefined): void {
    [this.standing, this.status] = [standing, status];
    this.draw();
  }

  /** Whether measured lines of the file in the active editor were edited. */
  showEdited(edited: boolean): void {
    if (this.edited !== edited) {
      this.edited = edited;
      this.draw();
    }
  }

  dispose(): void {
    clearInterval(this.timer);
    this.item.dispose();
  }

  private draw(): void {
    const words = statusWords(this.standing, this.status, { edited: this.edited }, Date.now());
    this.item.text = words.text;
    const tooltip = new vscode.MarkdownString();
    for (const line of words.tooltip) {
      tooltip.appendText(`${line}\n\n`);
    }
    this.item.tooltip = tooltip;
    this.item.command = COMMANDS[this.standing] ?? "deepscope.pickTrace";
    this.item.backgroundColor = words.isWarning ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.item.accessibilityInformation = { label: `DeepScope: ${words.tooltip.slice(0, 3).join(", ") || this.standing}` };
  }
}
