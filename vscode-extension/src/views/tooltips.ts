/** Tooltips of rows, made of plain text: names in them come from traces. */

import * as vscode from "vscode";
import type { HotLine, VanishedLine } from "../server/contract";

export function lineTooltip(line: HotLine, stepWords: string): vscode.MarkdownString {
  const tooltip = begun(line);
  tooltip.appendText(`${line.label} (${stepWords})\n\n`);
  if (line.baselineWords !== "") {
    tooltip.appendText(`Cost in the baseline: ${line.baselineWords}\n\n`);
  }
  tooltip.appendText(`Over the whole trace: ${line.wholeWords}`);
  if (!line.exact) {
    tooltip.appendText("\n\nThe numbers are those of the whole function, or loop, that begins here.");
  }
  if (line.standing !== "same") {
    tooltip.appendText(line.standing === "gone" ? "\n\nThis line was deleted since." : "\n\nThis line was edited since.");
  }
  if (line.uri === null) {
    tooltip.appendText("\n\nThis file was not found here.");
  }
  return tooltip;
}

export function goneTooltip(line: VanishedLine): vscode.MarkdownString {
  return begun(line).appendText(`${line.timeWords}; gone, or without a cost now.`);
}

/** The line's name and text. */
function begun(line: HotLine | VanishedLine): vscode.MarkdownString {
  const tooltip = new vscode.MarkdownString();
  tooltip.appendText(`${line.function} — ${line.file}:${line.line}\n\n`);
  return line.text === "" ? tooltip : tooltip.appendCodeblock(line.text, "python");
}
