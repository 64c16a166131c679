/** An answer's table as rows that know their place, their key and the rows below them, and as text for a spreadsheet. */

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
