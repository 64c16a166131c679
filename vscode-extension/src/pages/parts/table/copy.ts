/** Rows as text for a spreadsheet: numbers as they are, in nanoseconds, bytes and parts of 1. */

import type { Column } from "../../contract";
import { isNumber, type Cell } from "./rows";

const UNITS: Readonly<Partial<Record<Column["kind"], string>>> = { time: "ns", bytes: "bytes", flops: "FLOP", rate: "FLOP/s", bandwidth: "B/s" };

export type Separator = "," | "\t";

/** The text, a line a row, the head first. */
export function delimited(columns: readonly Column[], rows: readonly (readonly Cell[])[], separator: Separator): string {
  const head = columns.map((column) => quoted(titleOf(column), separator));
  const lines = rows.map((cells) => cells.map((cell) => quoted(cellText(cell), separator)).join(separator));
  return `${[head.join(separator), ...lines].join("\n")}\n`;
}

function titleOf(column: Column): string {
  const unit = isNumber(column) ? UNITS[column.kind] : undefined;
  return unit === undefined ? column.title : `${column.title} (${unit})`;
}

function cellText(cell: Cell): string {
  if (typeof cell !== "string") {
    return cell === null ? "" : String(cell);
  }
  // A spreadsheet would run it as a formula: https://owasp.org/www-community/attacks/CSV_Injection
  return /^\s*[=+\-@]/.test(cell) ? `'${cell}` : cell;
}

function quoted(text: string, separator: string): string {
  return text.includes(separator) || /["\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
