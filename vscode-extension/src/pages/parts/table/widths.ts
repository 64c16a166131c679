/** How wide columns have to be for their text. */

import type { Column, Table } from "../../contract";
import { words } from "../../words";
import { isNumber } from "./rows";

/** Rows whose texts count: the first ones, which are the largest. */
const LOOKED_AT = 400;
const MOST = 260;
const PADDING = 22;
/** Of a head: the padding and the mark of the order. */
const HEAD = 34;
const TABULAR = 1.06;

/** By a column's key its width in pixels. The first column and columns of text take what is left. */
export function widthsOf(table: Table, font: string): ReadonlyMap<string, number> {
  const context = document.createElement("canvas").getContext("2d");
  if (context !== null) {
    context.font = font;
  }
  const width = (text: string): number => context?.measureText(text).width ?? text.length * 7;
  return new Map(table.columns.map((column, at) => [column.key, widthOf(column, at, table, width)]));
}

function widthOf(column: Column, at: number, table: Table, width: (text: string) => number): number {
  const texts = table.rows.slice(0, LOOKED_AT).map((row) => words(row[at] ?? null, column.kind).slice(0, 80));
  const unlike = [...new Set(texts)];
  // Of numbers all digits are as wide as the widest, which a canvas does not know.
  const digits = isNumber(column) ? TABULAR : 1;
  const needed = Math.ceil(Math.max(...unlike.map(width), 0) * digits) + PADDING + (column.kind === "share" ? 30 : 0);
  const least = Math.max(needed, Math.ceil(width(column.title)) + HEAD);
  return at === 0 && !isNumber(column) ? Math.min(Math.max(least, 160), 340) : Math.min(least, isNumber(column) ? 200 : MOST);
}
