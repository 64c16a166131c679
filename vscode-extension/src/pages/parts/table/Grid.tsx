/** The rows and columns themselves: a head that stays, the rows in sight, the keyboard. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Column, Table } from "../../contract";
import { words } from "../../words";
import { Place } from "../Place";
import { useWidth } from "../browser";
import type { Rows, ShownRow } from "./useRows";
import { isNumber, type TableRow } from "./rows";
import { useVirtual } from "./useVirtual";

const ROW = 27;
const HEAD = 30;
const PAGE = 20;

export type OwnCell = (row: TableRow, column: Column) => ComponentChildren;

interface Props {
  readonly of: Table;
  readonly rows: Rows;
  readonly shown: readonly string[];
  readonly widths: ReadonlyMap<string, number>;
  readonly resized: (width: number) => void;
  readonly cell: OwnCell | undefined;
  readonly canChoose: boolean;
}

export function Grid({ of, rows: state, shown, widths, resized, cell, canChoose }: Props): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const { rows, chosen } = state;
  const sight = useVirtual(rows.length, scroller, ROW, HEAD);
  const chosenAt = chosen === undefined ? -1 : rows.findIndex(({ original }) => original === chosen);
  const [active, setActive] = useState(Math.max(chosenAt, 0));
  useWidth(scroller, resized);
  useEffect(() => {
    if (chosenAt >= 0) {
      setActive(chosenAt);
      sight.show(chosenAt);
    }
  }, [chosenAt]);
  const at = Math.min(active, rows.length - 1);
  const go = (next: number): void => {
    const place = Math.max(0, Math.min(next, rows.length - 1));
    setActive(place);
    sight.show(place);
    if (chosen !== undefined) {
      state.choose(rows[place]?.original, false);
    }
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget || event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    const row = rows[at];
    const act = row === undefined ? undefined : keyAction(event.key, row, at, { rows, go, state, canChoose });
    if (act !== undefined) {
      event.preventDefault();
      act();
    }
  };
  const columns = of.columns.flatMap((column, place) => (shown.includes(column.key) ? [{ column, place }] : []));
  const wide = wideOf(columns.map(({ column }) => column));
  const width = columns.reduce((sum, { column }) => sum + (widths.get(column.key) ?? 0), 0);
  return (
    <div
      class="grid"
      ref={scroller}
      tabIndex={0}
      role={state.isTree ? "treegrid" : "grid"}
      aria-label={of.title}
      aria-rowcount={rows.length + 1}
      aria-colcount={of.columns.length}
      aria-activedescendant={rows.length > 0 ? `${of.id}-${at}` : undefined}
      onKeyDown={pressed}
    >
      <table role="presentation" style={{ minWidth: `${width}px` }}>
        <colgroup>
          {columns.map(({ column }) => (
            <col key={column.key} style={column.key === wide ? {} : { width: `${widths.get(column.key) ?? 0}px` }} />
          ))}
        </colgroup>
        <thead role="rowgroup">
          <tr role="row" aria-rowindex={1}>
            {columns.map(({ column }) => (
              <Head key={column.key} column={column} state={state} />
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {sight.before > 0 && <tr class="gap" style={{ height: `${sight.before}px` }} aria-hidden />}
          {sight.items.map(({ index }) => {
            const row = rows[index];
            return row === undefined ? null : (
              <tr
                key={row.id}
                id={`${of.id}-${index}`}
                role="row"
                aria-rowindex={index + 2}
                aria-selected={row.original === chosen}
                aria-level={state.isTree ? row.depth + 1 : undefined}
                aria-expanded={row.getCanExpand() ? row.getIsExpanded() : undefined}
                class={`${index === at ? "active" : ""} ${row.original === chosen ? "chosen" : ""} ${canChoose ? "choosable" : ""}`}
                onClick={(event) => {
                  setActive(index);
                  if (canChoose && !(event.target instanceof Element && event.target.closest("a, button") !== null)) {
                    state.choose(row.original === chosen ? undefined : row.original);
                  }
                }}
              >
                {columns.map(({ column, place }) => (
                  <Cell key={column.key} column={column} place={place} row={row} state={state} own={cell} />
                ))}
              </tr>
            );
          })}
          {sight.after > 0 && <tr class="gap" style={{ height: `${sight.after}px` }} aria-hidden />}
        </tbody>
      </table>
    </div>
  );
}

/** The column that has the width which the others leave: the names of rows, else their places. */
function wideOf(columns: readonly Column[]): string | undefined {
  const [first] = columns;
  return first === undefined || !isNumber(first) ? first?.key : columns.findLast(({ kind }) => kind === "place")?.key;
}

interface Around {
  readonly rows: readonly ShownRow[];
  readonly go: (to: number) => void;
  readonly state: Rows;
  readonly canChoose: boolean;
}

/** What a key does at a row; undefined for nothing. */
function keyAction(key: string, row: ShownRow, at: number, { rows, go, state, canChoose }: Around): (() => void) | undefined {
  const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: PAGE, PageUp: -PAGE, Home: -rows.length, End: rows.length };
  const step = steps[key];
  if (step !== undefined) {
    return () => go(at + step);
  }
  if (key === "ArrowRight" && row.getCanExpand()) {
    return () => (row.getIsExpanded() ? go(at + 1) : state.setOpen(row, true));
  }
  if (key === "ArrowLeft" && state.isTree) {
    if (row.getCanExpand() && row.getIsExpanded()) {
      return () => state.setOpen(row, false);
    }
    const above = rows.findLastIndex((one, place) => place < at && one.depth < row.depth);
    return above < 0 ? undefined : () => go(above);
  }
  if ((key === "Enter" || key === " ") && canChoose) {
    return () => state.choose(row.original === state.chosen ? undefined : row.original);
  }
  return key === "Escape" && state.chosen !== undefined ? () => state.choose(undefined) : undefined;
}

function Head({ column, state }: { readonly column: Column; readonly state: Rows }): JSX.Element {
  const at = state.order.findIndex(({ id }) => id === column.key);
  const desc = state.order[at]?.desc;
  return (
    <th
      role="columnheader"
      scope="col"
      class={isNumber(column) ? "number" : ""}
      aria-sort={desc === undefined ? "none" : desc ? "descending" : "ascending"}
      title={column.help === "" ? undefined : column.help}
    >
      <button type="button" onClick={(event) => state.sortBy(column.key, event.shiftKey)}>
        <span class="title">{column.title}</span>
        <span class="order" aria-hidden>
          {desc === undefined ? "" : desc ? "↓" : "↑"}
          {at >= 0 && state.order.length > 1 ? at + 1 : ""}
        </span>
      </button>
    </th>
  );
}

interface CellProps {
  readonly column: Column;
  readonly place: number;
  readonly row: ShownRow;
  readonly state: Rows;
  readonly own: OwnCell | undefined;
}

function Cell({ column, place, row, state, own }: CellProps): JSX.Element {
  const { original } = row;
  const value = original.cells[place] ?? null;
  const text = place > 0 && value === 0 ? "" : words(value, column.kind);
  const given = own?.(original, column);
  const content = given ?? (column.kind === "place" ? <Place of={original} words={text} /> : text);
  if (place === 0) {
    return (
      <th role="rowheader" scope="row" class={isNumber(column) ? "number" : ""} title={typeof value === "string" ? value : undefined}>
        <div class="first" style={state.isTree ? { paddingLeft: `${row.depth * 14}px` } : {}}>
          {state.isTree && <Twist row={row} state={state} />}
          <span class="text">{content}</span>
        </div>
      </th>
    );
  }
  if (column.kind === "share") {
    return (
      <td role="gridcell" class="number share">
        {typeof value === "number" && value > 0 && <span class="bar" style={{ width: `${Math.min(100 * value, 100)}%` }} aria-hidden />}
        <span class="value">{content}</span>
      </td>
    );
  }
  return (
    <td role="gridcell" class={isNumber(column) ? "number" : ""} title={typeof value === "string" && column.kind === "text" ? value : undefined}>
      {content}
    </td>
  );
}

function Twist({ row, state }: { readonly row: ShownRow; readonly state: Rows }): JSX.Element {
  if (!row.getCanExpand()) {
    return <span class="twist" aria-hidden />;
  }
  const isOpen = row.getIsExpanded();
  return (
    <button type="button" class="twist" tabIndex={-1} aria-label={isOpen ? "Collapse" : "Expand"} onClick={() => state.setOpen(row, !isOpen)}>
      {isOpen ? "▾" : "▸"}
    </button>
  );
}
