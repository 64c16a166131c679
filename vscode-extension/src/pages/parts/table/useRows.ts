/** A table's rows in their order, as far as they are looked for and not below a closed one. */

import {
  columnFilteringFeature,
  createExpandedRowModel,
  createFilteredRowModel,
  createSortedRowModel,
  globalFilteringFeature,
  rowExpandingFeature,
  rowSortingFeature,
  tableFeatures,
  useTable,
  type ColumnDef,
  type Row,
} from "@tanstack/preact-table";
import { useMemo, useState } from "preact/hooks";
import { go, useAddress, withWords } from "../../app/address";
import type { Column, Table } from "../../contract";
import { compared, flattened, hasWords, isNumber, rowsOf, type TableRow } from "./rows";
import { filtersOf, filtersWord, meets, orderOf, orderWord, type Condition, type Filter, type Order } from "./state";

export interface Rows {
  readonly rows: readonly ShownRow[];
  readonly isTree: boolean;
  readonly order: readonly Order[];
  readonly filters: readonly Filter[];
  readonly wanted: string;
  readonly chosen: TableRow | undefined;
  /** Sorts by a column: the other way round, or no more; with `isMore` beside the columns before. */
  readonly sortBy: (column: string, isMore: boolean) => void;
  readonly setFilters: (filters: readonly Filter[]) => void;
  readonly look: (wanted: string) => void;
  readonly choose: (row: TableRow | undefined, isNew?: boolean) => void;
  readonly setOpen: (row: ShownRow, isOpen: boolean) => void;
  readonly setAllOpen: (isOpen: boolean) => void;
}

/** `word` stands before the table's words in the address, where a page has several. */
export function useRows(table: Table, word: string, openDepth: number): Rows {
  const address = useAddress();
  const said = (name: string): string => address.words[`${word}${name}`] ?? "";
  const say = (name: string, value: string, isNew = false): void => go(withWords(address, { [`${word}${name}`]: value }), isNew);
  const roots = useMemo(() => rowsOf(table), [table]);
  const columns = useMemo(() => columnsOf(table.columns), [table]);
  const kinds = useMemo(() => new Map(table.columns.map(({ key, kind }) => [key, kind])), [table]);
  const sorting = useMemo(() => orderOf(said("sort"), new Set(kinds.keys())), [said("sort"), kinds]);
  const columnFilters = useMemo(() => filtersOf(said("where"), kinds), [said("where"), kinds]);
  const search = useMemo(() => searching(table.columns), [table]);
  const wanted = said("find");
  const isTree = table.parents.length > 0;
  const [opened, setOpened] = useState<Readonly<Record<string, boolean>> | undefined>();
  const first = useMemo(() => upTo(roots, openDepth), [roots, openDepth]);
  // Below what is looked for everything is shown.
  const expanded = wanted !== "" || columnFilters.length > 0 ? true : (opened ?? first);
  const shown = useTable(
    {
      features,
      columns,
      data: roots,
      getRowId: (row: TableRow) => String(row.index),
      getSubRows: (row: TableRow) => row.below,
      filterFromLeafRows: true,
      globalFilterFn: search,
      getColumnCanGlobalFilter: (column: { readonly id: string }) => column.id === table.columns[0]?.key,
      autoResetExpanded: false,
      state: { sorting, columnFilters, globalFilter: wanted, expanded },
      onSortingChange: (next) => say("sort", orderWord(typeof next === "function" ? next(sorting) : next)),
    },
    () => null,
  );
  const { rows } = shown.getRowModel();
  return {
    rows,
    isTree,
    order: sorting,
    filters: columnFilters,
    wanted,
    chosen: useMemo(() => byKey(roots, said("row")), [roots, said("row")]),
    sortBy: (column, isMore) => shown.getColumn(column)?.toggleSorting(undefined, isMore),
    setFilters: (filters) => say("where", filtersWord(filters)),
    look: (next) => say("find", next),
    choose: (row, isNew = true) => say("row", row?.key ?? "", isNew),
    setOpen: (row, isOpen) => setOpened({ ...(opened ?? first), [row.id]: isOpen }),
    setAllOpen: (isOpen) => setOpened(isOpen ? Object.fromEntries([...flattened(roots)].map((row) => [String(row.index), true])) : {}),
  };
}

/** Which rows are open at first: those less deep. */
function upTo(roots: readonly TableRow[], depth: number): Readonly<Record<string, boolean>> {
  const found: Record<string, boolean> = {};
  let level = roots;
  for (let at = 0; at < depth; at++) {
    for (const row of level) {
      found[String(row.index)] = true;
    }
    level = level.flatMap(({ below }) => below);
  }
  return found;
}

function byKey(roots: readonly TableRow[], key: string): TableRow | undefined {
  if (key !== "") {
    for (const row of flattened(roots)) {
      if (row.key === key) {
        return row;
      }
    }
  }
  return undefined;
}

const features = tableFeatures({
  rowSortingFeature,
  columnFilteringFeature,
  globalFilteringFeature,
  rowExpandingFeature,
  sortedRowModel: createSortedRowModel(),
  filteredRowModel: createFilteredRowModel(),
  expandedRowModel: createExpandedRowModel(),
});

type Features = typeof features;
export type ShownRow = Row<Features, TableRow>;

/** The columns; what is lacking stands last in either order. */
function columnsOf(columns: readonly Column[]): ColumnDef<Features, TableRow>[] {
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
function searching(columns: readonly Column[]): (row: ShownRow, column: string, wanted: string) => boolean {
  return (row, _, wanted) => hasWords(row.original, columns, wanted);
}
