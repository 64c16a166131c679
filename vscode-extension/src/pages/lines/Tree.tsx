/** Rows of a tree, of any number: those in sight are drawn; keys move, open and close. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useVirtual } from "../parts/table/useVirtual";

export interface TreeRow {
  readonly key: string | number;
  readonly depth: number;
  /** Undefined where nothing can be below it. */
  readonly isOpen: boolean | undefined;
}

/** How a row looks. */
export interface Look {
  readonly title: string;
  /** In pixels. */
  readonly indent: number;
  /** How much of the row is warm, from 0 to 1. */
  readonly part: number;
  readonly isChosen?: boolean;
  readonly content: ComponentChildren;
}

interface Props<Row extends TreeRow> {
  /** Of its style, and of its rows' ids. */
  readonly name: string;
  readonly label: string;
  readonly rows: readonly Row[];
  /** Its height in rows; without it the tree takes the room that there is. */
  readonly height?: number;
  /** Opens or closes a row, or chooses it. */
  readonly act: (row: Row) => void;
  /** A text is the title of the rows below it. */
  readonly lookOf: (row: Row) => Look | string;
  /** The first row is the active one again when this is another. */
  readonly of: unknown;
}

const ROW = 24;
const PAGE = 15;

export function Tree<Row extends TreeRow>({ name, label, rows, height, act, lookOf, of }: Props<Row>): JSX.Element {
  const [active, setActive] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const sight = useVirtual(rows.length, scroller, ROW, 0);
  useEffect(() => setActive(0), [of]);
  const at = Math.min(active, rows.length - 1);
  const goTo = (place: number): void => {
    const next = Math.max(0, Math.min(place, rows.length - 1));
    setActive(next);
    sight.show(next);
  };
  const pressed = (event: KeyboardEvent): void => {
    const isOfLink = event.target !== event.currentTarget && (event.key === "Enter" || event.key === " ");
    const action = isOfLink ? undefined : keyAction(event.key, rows, at, goTo, act);
    if (action !== undefined) {
      event.preventDefault();
      action();
    }
  };
  return (
    <div
      class={`tree ${name}tree`}
      role="tree"
      aria-label={label}
      tabIndex={0}
      ref={scroller}
      style={height === undefined ? {} : { height: `${Math.min(rows.length, height) * ROW}px` }}
      aria-activedescendant={`${name}-${at}`}
      onKeyDown={pressed}
    >
      <div style={{ paddingTop: `${sight.before}px`, paddingBottom: `${sight.after}px` }}>
        {sight.items.map(({ index }) => {
          const row = rows[index];
          if (row === undefined) {
            return null;
          }
          const look = lookOf(row);
          return typeof look === "string" ? (
            <div key={row.key} class="treetitle" id={`${name}-${index}`}>
              {look}
            </div>
          ) : (
            <div
              key={row.key}
              id={`${name}-${index}`}
              class={`treerow ${index === at ? "active" : ""} ${look.isChosen === true ? "chosen" : ""}`}
              role="treeitem"
              aria-level={row.depth + 1}
              aria-expanded={row.isOpen}
              aria-selected={look.isChosen}
              title={look.title}
              style={{ paddingLeft: `${look.indent}px`, "--part": look.part }}
              onClick={() => {
                setActive(index);
                act(row);
              }}
            >
              <span class="twist" aria-hidden>
                {row.isOpen === undefined ? "" : row.isOpen ? "▾" : "▸"}
              </span>
              {look.content}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** What a key does; undefined for nothing. */
function keyAction<Row extends TreeRow>(key: string, rows: readonly Row[], at: number, goTo: (place: number) => void, act: (row: Row) => void): (() => void) | undefined {
  const row = rows[at];
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: PAGE, PageUp: -PAGE, Home: -rows.length, End: rows.length }[key];
  if (step !== undefined || row === undefined) {
    return step === undefined ? undefined : () => goTo(at + step);
  }
  if (key === "ArrowRight" && row.isOpen !== undefined) {
    return () => (row.isOpen === true ? goTo(at + 1) : act(row));
  }
  if (key === "ArrowLeft") {
    const above = rows.findLastIndex((one, place) => place < at && one.depth < row.depth);
    return () => (row.isOpen === true ? act(row) : goTo(above < 0 ? at : above));
  }
  return key === "Enter" || key === " " ? () => act(row) : undefined;
}
