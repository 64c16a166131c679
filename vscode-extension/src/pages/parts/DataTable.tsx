/**
 * A table of an answer: sorted, searched and filtered by its reader, with as many columns as there is room for, trees
 * that open, and a panel about the chosen row. Its state stands in the address.
 */

import type { ComponentChildren, JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Table } from "../contract";
import { count } from "../words";
import { delimited, type Separator, type TableRow } from "./table/rows";
import { fittedWidths, shownColumns, useChosenColumns, widthsOf } from "./table/columns";
import { Grid, type OwnCell } from "./table/Grid";
import { Toolbar } from "./table/Toolbar";
import { useRows } from "./table/useRows";
import "./table/table.css";

export type { TableRow } from "./table/rows";

interface Props {
  readonly of: Table;
  /** Stands before this table's words in the address, where a page has several. */
  readonly word?: string;
  /** Whether the table takes the rest of the page's height; else it is as high as its rows, up to a limit. */
  readonly fills?: boolean;
  /** How many levels of a tree are open at first. */
  readonly openDepth?: number;
  /** What is shown of the chosen row; without it rows are not chosen. */
  readonly details?: (row: TableRow) => ComponentChildren;
  /** Another content of some cells; undefined for the usual one. */
  readonly cell?: OwnCell;
  /** Switches before the others above the table. */
  readonly tools?: ComponentChildren;
}

export function DataTable({ of, word = "", fills = false, openDepth = 2, details, cell, tools }: Props): JSX.Element {
  const rows = useRows(of, word, openDepth);
  const [chosen, choose] = useChosenColumns(of.id);
  const [room, setRoom] = useState(Number.POSITIVE_INFINITY);
  const needed = useMemo(() => widthsOf(of, getComputedStyle(document.body).font), [of]);
  const widths = useMemo(() => fittedWidths(of.columns, needed, room), [of, needed, room]);
  const shown = useMemo(() => shownColumns(of.columns, widths, room, chosen), [of, widths, room, chosen]);
  const textOf = (separator: Separator): string => {
    const places = of.columns.flatMap(({ key }, at) => (shown.includes(key) ? [at] : []));
    const cells = rows.rows.map(({ original }) => places.map((at) => original.cells[at] ?? null));
    return delimited(places.flatMap((at) => of.columns[at] ?? []), cells, separator);
  };
  return (
    <div class={`datatable ${fills ? "fills" : ""}`}>
      <Toolbar of={of} rows={rows} shown={shown} chosen={chosen} choose={choose} textOf={textOf} tools={tools} />
      <div class={`both ${details !== undefined && rows.chosen !== undefined ? "split" : ""}`}>
        <Grid of={of} rows={rows} shown={shown} widths={widths} resized={setRoom} cell={cell} canChoose={details !== undefined} />
        {details !== undefined && rows.chosen !== undefined && (
          <aside class="rowdetails" aria-label="The chosen row">
            <button type="button" class="close" aria-label="Close" title="Close (Escape)" onClick={() => rows.choose(undefined)}>
              ×
            </button>
            {details(rows.chosen)}
          </aside>
        )}
      </div>
      <Foot of={of} shown={rows.rows.length} isAll={rows.wanted === "" && rows.filters.length === 0} isTree={rows.isTree} />
    </div>
  );
}

interface SectionProps {
  readonly of: Table | null;
  readonly word: string;
  readonly title?: string;
  /** What its numbers are of; "" where that is plain. */
  readonly about?: string;
  readonly level?: "h2" | "h3";
}

/** A table with its title; nothing where it has no rows. */
export function TableSection({ of, word, title = of?.title ?? "", about = "", level: Heading = "h2" }: SectionProps): JSX.Element | null {
  return of === null || of.rows.length === 0 ? null : (
    <section>
      <Heading>{title}</Heading>
      {about !== "" && <p class="muted">{about}</p>}
      <DataTable of={of} word={word} />
    </section>
  );
}

interface FootProps {
  readonly of: Table;
  readonly shown: number;
  readonly isAll: boolean;
  readonly isTree: boolean;
}

/** How many rows there are, and how many are not here. */
function Foot({ of, shown, isAll, isTree }: FootProps): JSX.Element {
  const all = of.rows.length;
  const words = isAll ? (isTree && shown < all ? `${count(shown)} of ${count(all)} rows, others closed` : `${count(all)} ${all === 1 ? "row" : "rows"}`) : `${count(shown)} of ${count(all)} rows`;
  return (
    <p class="foot muted" role="status">
      {words}
      {of.leftOut > 0 && `; ${count(of.leftOut)} more are left out: the trace has ${count(all + of.leftOut)}`}
    </p>
  );
}
