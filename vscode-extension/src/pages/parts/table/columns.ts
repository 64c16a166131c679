/** Which columns are shown, and how wide: those that the reader chose, and of the others as many as there is room for. */

import type { Column, Table } from "../../contract";
import { useState } from "preact/hooks";
import { words } from "../../words";
import { isNumber } from "./rows";

/** By a column's key whether it is always or never shown; without a word it is shown where there is room. */
export type Chosen = Readonly<Record<string, boolean>>;

const FIRST_SHARE = 0.45;
const FIRST_LEAST = 130;

/** The widths where the first column, which stays in sight, leaves room for others. */
export function fittedWidths(columns: readonly Column[], widths: ReadonlyMap<string, number>, room: number): ReadonlyMap<string, number> {
  const first = columns[0]?.key ?? "";
  return new Map([...widths, [first, Math.min(widths.get(first) ?? 0, Math.max(FIRST_LEAST, FIRST_SHARE * room))]]);
}

/** The keys of the columns that are shown, in their order; the less important ones leave first, the first one never. */
export function shownColumns(columns: readonly Column[], widths: ReadonlyMap<string, number>, room: number, chosen: Chosen): readonly string[] {
  const wanted = columns.filter(({ key }, at) => at === 0 || chosen[key] !== false);
  let width = wanted.reduce((sum, { key }) => sum + (widths.get(key) ?? 0), 0);
  const leaving = wanted
    .map((column, at) => ({ column, at }))
    .filter(({ column, at }) => at > 0 && column.rank > 0 && chosen[column.key] !== true)
    .sort((one, other) => other.column.rank - one.column.rank || other.at - one.at);
  const gone = new Set<string>();
  for (const { column } of leaving) {
    if (width <= room) {
      break;
    }
    gone.add(column.key);
    width -= widths.get(column.key) ?? 0;
  }
  return wanted.flatMap(({ key }) => (gone.has(key) ? [] : [key]));
}

/** The columns that are chosen for tables of this name, and how to choose others. */
export function useChosenColumns(table: string): readonly [Chosen, (chosen: Chosen) => void] {
  const key = `deepscope.columns.${table}`;
  const [chosen, choose] = useState<Chosen>(() => remembered(key));
  return [
    chosen,
    (next) => {
      choose(next);
      try {
        window.localStorage.setItem(key, JSON.stringify(next));
      } catch {
        // Not remembered where the browser keeps nothing.
      }
    },
  ];
}

function remembered(key: string): Chosen {
  try {
    const found: unknown = JSON.parse(window.localStorage.getItem(key) ?? "{}");
    return typeof found === "object" && found !== null ? Object.fromEntries(Object.entries(found).filter(([, is]) => typeof is === "boolean")) : {};
  } catch {
    return {};
  }
}

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
