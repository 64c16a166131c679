/** A file's text as it ran, with the numbers of its lines in the margin, and a map of the hot ones beside it. */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Column, FileText, MeasuredLine } from "../contract";
import { shownColumns, type Chosen } from "../parts/table/columns";
import { useWidth } from "../parts/browser";
import { useVirtual } from "../parts/table/useVirtual";
import { words } from "../words";
import { opens, tokens, type Open } from "./python";

const ROW = 20;
const HEAD = 26;
const COLUMN = 68;
/** Room that is left to the text, and to the numbers of the lines and their bars. */
const TEXT_WIDTH = 370;

interface Props {
  readonly of: FileText;
  readonly chosen: Chosen;
  /** The column that heat is of. */
  readonly by: string;
  readonly setBy: (key: string) => void;
  readonly selected: number;
  readonly select: (line: number, isNew: boolean) => void;
}

interface Row {
  readonly line: number;
  readonly text: string;
  readonly open: Open;
  readonly measured: MeasuredLine | undefined;
}

export function SourceView({ of, chosen, by, setBy, selected, select }: Props): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(0);
  useWidth(scroller, setRoom);
  const rows = useMemo(() => rowsOf(of), [of]);
  const sight = useVirtual(rows.length, scroller, ROW, HEAD);
  const heatAt = Math.max(
    0,
    of.columns.findIndex(({ key }) => key === by),
  );
  const shown = useMemo(() => {
    const widths = new Map(of.columns.map(({ key }) => [key, COLUMN]));
    const keys = shownColumns(of.columns, widths, Math.max(COLUMN, room - TEXT_WIDTH), chosen);
    return of.columns.flatMap((column, at) => (keys.includes(column.key) ? [{ column, at }] : []));
  }, [of, chosen, room]);
  const places = useMemo(() => new Map(rows.map(({ line }, at) => [line, at])), [rows]);
  const selectedAt = places.get(selected) ?? -1;
  useEffect(() => {
    const element = scroller.current;
    const top = HEAD + selectedAt * ROW;
    if (element !== null && selectedAt >= 0 && (top < element.scrollTop + HEAD || top + 2 * ROW > element.scrollTop + element.clientHeight)) {
      element.scrollTop = Math.max(0, top - element.clientHeight / 2);
    }
  }, [of, selectedAt]);
  const longest = useMemo(() => rows.reduce((most, { text }) => Math.max(most, text.length), 0), [rows]);
  const digits = String(rows.at(-1)?.line ?? 0).length;
  const step = (by: 1 | -1): void => {
    for (let at = selectedAt + by; at >= 0 && at < rows.length; at += by) {
      const row = rows[at];
      if (row?.measured !== undefined) {
        select(row.line, false);
        return;
      }
    }
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      step(event.key === "ArrowDown" ? 1 : -1);
      event.preventDefault();
    }
  };
  return (
    <div class="source" style={{ "--digits": `${digits + 1}ch`, "--margin": `${shown.length * COLUMN}px`, "--rows": rows.length }}>
      <div
        class="sourcelines"
        ref={scroller}
        tabIndex={0}
        role="grid"
        aria-label={`${of.name}: up and down lead from one measured line to the next`}
        aria-rowcount={rows.length}
        aria-activedescendant={selectedAt < 0 ? undefined : `source-${selected}`}
        onKeyDown={pressed}
      >
        <div class="sourcehead" role="row" style={{ height: `${HEAD}px` }}>
          <div class="margin">
            <span class="lineno" role="columnheader" aria-label="Line" />
            {shown.map(({ column, at }) => (
              <span key={column.key} class="cell" role="columnheader" title={`${column.help} Click: the heat is of this.`}>
                <button type="button" aria-pressed={at === heatAt} onClick={() => setBy(column.key)}>
                  {column.title}
                </button>
              </span>
            ))}
            <span class="bar" role="columnheader" aria-label="Forward, backward and the rest of the cost" />
          </div>
        </div>
        <div
          style={{
            minHeight: `${rows.length * ROW}px`,
            minWidth: `calc(${longest + 2}ch + var(--digits) + var(--margin) + 90px)`,
            paddingBottom: `${sight.after}px`,
            paddingTop: `${sight.before}px`,
          }}
        >
          {sight.items.map(({ index }) => {
            const row = rows[index];
            return row === undefined ? null : (
              <SourceRow key={row.line} row={row} of={of} shown={shown} heatAt={heatAt} isSelected={row.line === selected} select={select} />
            );
          })}
        </div>
      </div>
      <Minimap of={of} heatAt={heatAt} count={rows.length} at={(line) => places.get(line) ?? 0} show={(line) => select(line, false)} />
    </div>
  );
}

interface RowProps {
  readonly row: Row;
  readonly of: FileText;
  readonly shown: readonly { readonly column: FileText["columns"][number]; readonly at: number }[];
  readonly heatAt: number;
  readonly isSelected: boolean;
  readonly select: (line: number, isNew: boolean) => void;
}

function SourceRow({ row, of, shown, heatAt, isSelected, select }: RowProps): JSX.Element {
  const { measured } = row;
  const values = measured?.values ?? [];
  const bars = barsOf(values, of.columns, of.largest);
  const shade = heat(values[heatAt] ?? 0, of.largest[heatAt] ?? 0);
  return (
    <div
      id={`source-${row.line}`}
      class={`sourcerow ${isSelected ? "selected" : ""} ${measured === undefined ? "" : "measured"} ${measured?.isLibrary === true ? "library" : ""}`}
      role="row"
      aria-selected={isSelected}
      style={{ "--shade": shade }}
      onClick={() => {
        if ((window.getSelection()?.toString() ?? "") === "") {
          select(row.line, true);
        }
      }}
    >
      <div class="margin">
        <span class="lineno" role="rowheader">
          {row.line}
        </span>
        {shown.map(({ column, at }) => {
          const value = values[at] ?? 0;
          return (
            <span key={column.key} class={`cell number ${at === heatAt ? "hot" : ""}`} role="gridcell">
              {value === 0 ? "" : words(value, column.kind)}
            </span>
          );
        })}
        <span class="bar" role="gridcell" aria-hidden>
          {bars.forward > 0 && <i class="forward" style={{ width: `${100 * bars.forward}%` }} />}
          {bars.backward > 0 && <i class="backward" style={{ width: `${100 * bars.backward}%` }} />}
          {bars.rest > 0 && <i class="rest" style={{ width: `${100 * bars.rest}%` }} />}
        </span>
      </div>
      <code role="gridcell">
        {of.text.length === 0 ? (
          <em class="muted">{row.text}</em>
        ) : (
          tokens(row.text, row.open)[0].map(({ kind, text }, at) => (kind === "" ? text : <span key={at} class={`py-${kind}`}>{text}</span>))
        )}
      </code>
    </div>
  );
}

/** The lines of the text; without a text those that were measured, with their functions in its place. */
function rowsOf({ text, rows }: FileText): readonly Row[] {
  const measured = new Map(rows.map((row) => [row.line, row]));
  if (text.length === 0) {
    return [...measured.values()].map((row) => ({ line: row.line, text: row.functions.join(", "), open: "", measured: row }));
  }
  const open = opens(text);
  return text.map((line, at) => ({ line: at + 1, text: line, open: open[at] ?? "", measured: measured.get(at + 1) }));
}

const MARKS = 400;

interface MinimapProps {
  readonly of: FileText;
  readonly heatAt: number;
  /** Rows of the view beside it. */
  readonly count: number;
  /** The row of a line. */
  readonly at: (line: number) => number;
  readonly show: (line: number) => void;
}

function Minimap({ of, heatAt, count, at, show }: MinimapProps): JSX.Element {
  const marks = useMemo(() => {
    const largest = of.largest[heatAt] ?? 0;
    return of.rows
      .map(({ line, values }) => ({ line, shade: heat(values[heatAt] ?? 0, largest), top: at(line) / Math.max(count, 1) }))
      .filter(({ shade }) => shade > 0)
      .sort((one, other) => other.shade - one.shade)
      .slice(0, MARKS);
  }, [of, heatAt, count]);
  return (
    <div class="minimap" aria-hidden title="Hot lines: a click leads there">
      {marks.map(({ line, shade, top }) => (
        <i key={line} style={{ top: `${100 * top}%`, "--shade": shade }} onClick={() => show(line)} />
      ))}
    </div>
  );
}

/** From 0 to 1; small values are still seen beside the largest. */
export function heat(value: number, largest: number): number {
  return largest > 0 && value > 0 ? Math.sqrt(Math.min(1, value / largest)) : 0;
}

interface Bars {
  readonly forward: number;
  readonly backward: number;
  /** The rest of the cost: the device idle; where the CPU is the device, Python. */
  readonly rest: number;
}

/** The parts of a line's cost, as shares of the largest cost of a line. */
export function barsOf(values: readonly number[], columns: readonly Column[], largest: readonly number[]): Bars {
  const at = (key: string): number => values[columns.findIndex((column) => column.key === key)] ?? 0;
  const whole = largest[0] ?? 0;
  const part = (value: number): number => (whole > 0 ? Math.max(0, Math.min(1, value / whole)) : 0);
  return { forward: part(at("self") - at("backward")), backward: part(at("backward")), rest: part(at("cost") - at("self")) };
}
