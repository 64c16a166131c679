/** Tooltips of rows, made of plain text: names in them come from traces. */

import * as vscode from "vscode";
import type { HotLine, VanishedLine } from "../server/contract";
import { difference, duration, share, size } from "../units";

const NUMBERS: readonly (readonly [string, string, (value: number) => string])[] = [
  ["self_device_ns", "device", duration],
  ["backward_device_ns", "of it backward", duration],
  ["total_device_ns", "with what it calls", duration],
  ["self_cpu_ns", "CPU", duration],
  ["wait_ns", "waiting", duration],
  ["idle_ns", "device idle meanwhile", duration],
  ["bytes_allocated", "allocated", size],
  ["launches", "launches", String],
  ["calls", "entered", String],
];

export function lineTooltip(line: HotLine, stepWords: string): vscode.MarkdownString {
  const tooltip = new vscode.MarkdownString();
  tooltip.appendText(`${line.function} — ${line.file}:${line.line}\n\n`);
  if (line.text !== "") {
    tooltip.appendCodeblock(line.text, "python");
  }
  tooltip.appendText(`${line.label} (${stepWords})\n\n`);
  if (line.baselineNs !== null) {
    const change = line.perStepNs - line.baselineNs;
    tooltip.appendText(`Own time of the baseline: ${duration(line.baselineNs)}, now ${difference(change)}\n\n`);
  }
  tooltip.appendText("Over the whole trace: ");
  const shown = NUMBERS.flatMap(([name, word, format]) => {
    const value = line.numbers[name];
    return value === undefined ? [] : [`${word} ${format(value)}`];
  });
  tooltip.appendText(shown.join(", "));
  if (!line.exact) {
    tooltip.appendText("\n\nThe numbers are those of the whole function, or loop, that begins here.");
  }
  if (line.uri === null) {
    tooltip.appendText("\n\nThis file was not found here.");
  }
  return tooltip;
}

export function goneTooltip(line: VanishedLine): vscode.MarkdownString {
  const tooltip = new vscode.MarkdownString();
  tooltip.appendText(`${line.function} — ${line.file}:${line.line}\n\n`);
  if (line.text !== "") {
    tooltip.appendCodeblock(line.text, "python");
  }
  tooltip.appendText(`${duration(line.perStepNs)} per step in the baseline (${share(line.share)}); gone, or without time of its own now.`);
  return tooltip;
}
