/** The data of a chart, with as much of Google's DataTable as torch-tb-profiler asks for. */

export type Cell = string | number | boolean | null;

export interface Column {
  readonly type: string;
  readonly label: string;
  /** `tooltip` and the like: no data of its own, it belongs to the column before it. */
  readonly role: string | undefined;
}

type Given = Cell | undefined | { readonly v?: Cell; readonly f?: string };

export class DataTable {
  readonly columns: Column[] = [];
  readonly rows: Cell[][] = [];
  private readonly properties = new Map<string, unknown>();

  addColumn(given: string | { readonly type?: string; readonly label?: string; readonly id?: string; readonly role?: string | null }, label = ""): void {
    const column = typeof given === "string" ? { type: given, label } : given;
    this.columns.push({ type: column.type ?? "string", label: column.label ?? column.id ?? "", role: column.role ?? undefined });
  }

  addRow(cells: readonly Given[]): void {
    this.rows.push(this.columns.map((_, at) => value(cells[at])));
  }

  addRows(rows: readonly (readonly Given[])[]): void {
    rows.forEach((row) => this.addRow(row));
  }

  setProperty(row: number, column: number, name: string, given: unknown): void {
    this.properties.set(`${row}/${column}/${name}`, given);
  }

  getProperty(row: number, column: number, name: string): unknown {
    return this.properties.get(`${row}/${column}/${name}`) ?? null;
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
  /** What the page wants said of each value, in HTML; null where it leaves that to the chart. */
  readonly tooltips: readonly (string | null)[];
}

/** All columns of numbers but the first column, which says where the values stand. */
export function seriesOf(table: DataTable): Series[] {
  return table.columns.flatMap((column, at) => {
    if (at === 0 || column.type !== "number" || column.role !== undefined) {
      return [];
    }
    const next = table.columns[at + 1];
    return [
      {
        label: column.label,
        column: at,
        values: table.rows.map((row) => finite(row[at])),
        tooltips: table.rows.map((row) => (next?.role === "tooltip" ? words(row[at + 1]) : null)),
      },
    ];
  });
}

export function finite(cell: Cell | undefined): number | null {
  return typeof cell === "number" && Number.isFinite(cell) ? cell : null;
}

function words(cell: Cell | undefined): string | null {
  return cell === null || cell === undefined ? null : String(cell);
}

/** Three digits after the point at most, thousands apart. */
export function shown(cell: Cell | undefined): string {
  if (typeof cell === "number") {
    return cell.toLocaleString("en-US", { maximumFractionDigits: Math.abs(cell) < 1 ? 6 : 3 });
  }
  if (typeof cell === "boolean") {
    return cell ? "✔" : "✗";
  }
  return cell ?? "";
}
