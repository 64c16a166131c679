/** The data of a chart, with as much of Google's DataTable as torch-tb-profiler asks for. */

export type Cell = string | number | boolean | null;
type Given = Cell | undefined | { readonly v?: Cell; readonly f?: string };

export class DataTable {
  /** A column with a role (`tooltip`) has no data of its own. */
  readonly columns: { readonly type: string; readonly label: string; readonly role: string | undefined }[] = [];
  readonly rows: Cell[][] = [];
  /** By row/column, in CSS. */
  readonly styles = new Map<string, string>();

  addColumn(given: string | { readonly type?: string; readonly label?: string; readonly role?: string | null }, label = ""): void {
    const column = typeof given === "string" ? { type: given, label } : given;
    this.columns.push({ type: column.type ?? "string", label: column.label ?? "", role: column.role ?? undefined });
  }

  addRow(cells: readonly Given[]): void {
    this.rows.push(this.columns.map((_, at) => value(cells[at])));
  }

  addRows(rows: readonly (readonly Given[])[]): void {
    rows.forEach((row) => this.addRow(row));
  }

  setProperty(row: number, column: number, name: string, given: unknown): void {
    if (name === "style") {
      this.styles.set(`${row}/${column}`, String(given));
    }
  }
}

/** The first row has the columns' labels; a column is of numbers if its first value is one. */
export function arrayToDataTable(given: readonly (readonly Given[])[]): DataTable {
  const table = new DataTable();
  const [labels = [], ...rows] = given;
  labels.forEach((label, at) => {
    const first = rows.map((row) => value(row[at])).find((cell) => cell !== null);
    table.addColumn(typeof first === "number" ? "number" : "string", String(value(label) ?? ""));
  });
  table.addRows(rows);
  return table;
}

function value(given: Given): Cell {
  return (typeof given === "object" && given !== null ? given.v : given) ?? null;
}

/** A column of numbers as a chart draws it. */
export interface Series {
  readonly label: string;
  /** In the table. */
  readonly column: number;
  readonly values: readonly (number | null)[];
}

/** All columns of numbers but the first column, which says where the values stand. */
export function seriesOf(table: DataTable): Series[] {
  return table.columns.flatMap(({ type, label, role }, column) =>
    column === 0 || type !== "number" || role !== undefined ? [] : [{ label, column, values: table.rows.map((row) => finite(row[column])) }],
  );
}

/** Each series on those before it: what a row's values sum to up to there. */
export function stacked(series: readonly Series[]): (number | null)[][] {
  const heights: number[] = [];
  return series.map(({ values }) =>
    values.map((value, row) => (value === null ? null : (heights[row] = (heights[row] ?? 0) + value))),
  );
}

/** The rows that have a positive value, as parts of all from 0 to 1. */
export function sharesOf(table: DataTable): { readonly row: number; readonly label: string; readonly share: number }[] {
  const values = (seriesOf(table)[0]?.values ?? []).map((value) => Math.max(value ?? 0, 0));
  const total = values.reduce((sum, value) => sum + value, 0);
  return values.map((value, row) => ({ row, label: shown(table.rows[row]?.[0]), share: value / total })).filter(({ share }) => share > 0);
}

interface Span {
  readonly label: string;
  readonly name: string;
  readonly tooltip: string;
  readonly start: number;
  readonly end: number;
}

/** The spans of a table of label, name, tooltip, start and end. */
export function spansOf(table: DataTable): Span[] {
  return table.rows.flatMap(([label, name, tooltip, from, to]) => {
    const [start, end] = [finite(from), finite(to)];
    return start === null || end === null ? [] : [{ label: shown(label), name: shown(name), tooltip: shown(tooltip), start, end }];
  });
}

export function finite(cell: Cell | undefined): number | null {
  return typeof cell === "number" && Number.isFinite(cell) ? cell : null;
}

/** Three digits after the point at most, thousands apart. */
export function shown(cell: Cell | undefined): string {
  if (typeof cell === "number") {
    return cell.toLocaleString("en-US", { maximumFractionDigits: Math.abs(cell) < 1 ? 6 : 3 });
  }
  return typeof cell === "boolean" ? (cell ? "✔" : "✗") : (cell ?? "");
}

/** Rows by the values of a column, those without one last; -1 leaves them as they are. */
export function orderOf(table: DataTable, column: number, isAscending: boolean): number[] {
  const order = table.rows.map((_, at) => at);
  if (column < 0) {
    return order;
  }
  const of = (row: number): Cell => table.rows[row]?.[column] ?? null;
  const filled = order.filter((row) => of(row) !== null).sort((a, b) => {
    const [left, right] = [of(a), of(b)];
    const compared = typeof left === "number" && typeof right === "number" ? left - right : String(left).localeCompare(String(right));
    return isAscending ? compared : -compared;
  });
  return [...filled, ...order.filter((row) => of(row) === null)];
}
