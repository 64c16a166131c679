/** An answer's table as rows that know their place, their key and the rows below them. */

import type { Column, Table } from "../../contract";

export type Cell = string | number | null;

export interface TableRow {
  /** In the answer. */
  readonly index: number;
  /** What an address calls it. */
  readonly key: string;
  readonly cells: readonly Cell[];
  /** As recorded; "" for no line. */
  readonly file: string;
  readonly line: number;
  readonly below: readonly TableRow[];
}

interface Growing extends TableRow {
  readonly below: TableRow[];
}

/** The rows; of a tree its roots. */
export function rowsOf(table: Table): readonly TableRow[] {
  const all: Growing[] = table.rows.map((cells, index) => {
    const [file = -1, line = 0] = table.places[index] ?? [];
    return { index, key: table.keys[index] ?? String(index), cells, file: table.files[file] ?? "", line, below: [] };
  });
  const roots: TableRow[] = [];
  for (const row of all) {
    const parent = table.parents[row.index] ?? -1;
    // A parent stands before what is below it: no row can be below itself.
    (parent >= 0 && parent < row.index ? (all[parent]?.below ?? roots) : roots).push(row);
  }
  return roots;
}

/** Every row of trees, each before those below it. */
export function* flattened(rows: readonly TableRow[]): Generator<TableRow> {
  const waiting = [...rows].reverse();
  for (let row = waiting.pop(); row !== undefined; row = waiting.pop()) {
    yield row;
    waiting.push(...[...row.below].reverse());
  }
}

/** Whether cells of this column are numbers: they stand at the right. */
export function isNumber({ kind }: Column): boolean {
  return kind !== "text" && kind !== "place";
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** The order of two cells that are there. */
export function compared(one: Cell, other: Cell): number {
  return typeof one === "number" && typeof other === "number" ? one - other : collator.compare(String(one), String(other));
}

/** Whether a row's words have all words that are looked for. */
export function hasWords(row: TableRow, columns: readonly Column[], wanted: string): boolean {
  const words = columns.flatMap((column, at) => (isNumber(column) ? [] : [String(row.cells[at] ?? "")]));
  const text = [...words, row.file].join("\n").toLowerCase();
  return wanted
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
