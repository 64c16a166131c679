/** What pies, timelines and tables show from a table's rows. */

import { finite, shown, type Cell, type DataTable } from "./data";

export interface Slice {
  readonly row: number;
  readonly label: string;
  readonly value: number;
  readonly tooltip: string;
  /** From 0 to 1, clockwise from the top. */
  readonly from: number;
  readonly to: number;
}

/** The slices of the rows that have a positive value. */
export function slicesOf(table: DataTable): Slice[] {
  const column = table.columns.findIndex(({ type, role }, at) => at > 0 && type === "number" && role === undefined);
  const tooltip = table.columns.findIndex(({ role }) => role === "tooltip");
  const values = table.rows.map((row) => Math.max(finite(row[column]) ?? 0, 0));
  const total = values.reduce((sum, value) => sum + value, 0);
  let reached = 0;
  return values.flatMap((value, row) => {
    if (value === 0) {
      return [];
    }
    const from = reached / total;
    reached += value;
    const label = shown(table.rows[row]?.[0]);
    const told = tooltip < 0 ? undefined : table.rows[row]?.[tooltip];
    return [{ row, label, value, from, to: reached / total, tooltip: typeof told === "string" ? told : `${label}\n${shown(value)}` }];
  });
}

export interface Span {
  readonly row: number;
  readonly label: string;
  readonly name: string;
  readonly tooltip: string;
  readonly start: number;
  readonly end: number;
}

/** The spans of a table of label, name, perhaps a tooltip, start and end. */
export function spansOf(table: DataTable): Span[] {
  const numbers = table.columns.flatMap(({ type }, at) => (type === "number" || type === "date" ? [at] : []));
  const tooltip = table.columns.findIndex(({ role }) => role === "tooltip");
  const [from = -1, to = -1] = numbers.slice(-2);
  return table.rows.flatMap((cells, row) => {
    const [start, end] = [finite(cells[from]), finite(cells[to])];
    if (start === null || end === null) {
      return [];
    }
    const name = shown(cells[1]);
    return [{ row, label: shown(cells[0]), name, tooltip: tooltip < 0 ? name : shown(cells[tooltip]), start, end }];
  });
}

/** Rows by the values of a column, those without one last; -1 leaves them as they are. */
export function orderOf(table: DataTable, column: number, isAscending: boolean): number[] {
  const order = table.rows.map((_, at) => at);
  if (column < 0) {
    return order;
  }
  const sign = isAscending ? 1 : -1;
  const of = (row: number): Cell => table.rows[row]?.[column] ?? null;
  return order.sort((a, b) => {
    const [left, right] = [of(a), of(b)];
    if (left === null || right === null) {
      return left === right ? a - b : left === null ? 1 : -1;
    }
    const compared = typeof left === "string" || typeof right === "string" ? String(left).localeCompare(String(right)) : Number(left) - Number(right);
    return compared === 0 ? a - b : sign * compared;
  });
}
