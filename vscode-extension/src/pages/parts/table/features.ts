/** What TanStack's table does here: order, filters and trees of an answer's rows. */

import {
  columnFilteringFeature,
  createExpandedRowModel,
  createFilteredRowModel,
  createSortedRowModel,
  globalFilteringFeature,
  rowExpandingFeature,
  rowSortingFeature,
  tableFeatures,
  type ColumnDef,
  type Row,
} from "@tanstack/preact-table";
import type { Column } from "../../contract";
import { compared, hasWords, isNumber, type TableRow } from "./rows";
import { meets, type Condition } from "./state";

export const features = tableFeatures({
  rowSortingFeature,
  columnFilteringFeature,
  globalFilteringFeature,
  rowExpandingFeature,
  sortedRowModel: createSortedRowModel(),
  filteredRowModel: createFilteredRowModel(),
  expandedRowModel: createExpandedRowModel(),
});

export type Features = typeof features;
export type ShownRow = Row<Features, TableRow>;

/** The columns; what is lacking stands last in either order. */
export function columnsOf(columns: readonly Column[]): ColumnDef<Features, TableRow>[] {
  return columns.map((column, at) => ({
    id: column.key,
    accessorFn: (row: TableRow) => row.cells[at] ?? undefined,
    sortFn: (one: ShownRow, other: ShownRow) => compared(one.original.cells[at] ?? null, other.original.cells[at] ?? null),
    sortUndefined: "last" as const,
    sortDescFirst: isNumber(column),
    filterFn: (row: ShownRow, _: string, condition: Condition) => meets(row.original.cells[at] ?? null, condition),
  }));
}

/** Whether a row has the words that are looked for, in whichever column. */
export function searching(columns: readonly Column[]): (row: ShownRow, column: string, wanted: string) => boolean {
  return (row, _, wanted) => hasWords(row.original, columns, wanted);
}
