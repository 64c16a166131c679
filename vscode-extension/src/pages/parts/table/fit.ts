/** Which columns are shown: those that the reader chose, and of the others as many as there is room for. */

import type { Column } from "../../contract";

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
