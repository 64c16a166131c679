/** What a line's work is made of: modules, library lines, operators and kernels, as a tree whose rows open. */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { BelowNode } from "../contract";
import { KIND_WORDS } from "../../depths";
import { Place } from "../parts/Place";
import { useVirtual } from "../parts/table/useVirtual";
import { count, duration, share } from "../words";

const ROW = 24;
const MOST_ROWS = 22;

interface Props {
  readonly nodes: readonly BelowNode[];
  readonly leftOut: number;
}

export function BelowTree({ nodes, leftOut }: Props): JSX.Element {
  const children = useMemo(() => childrenOf(nodes), [nodes]);
  const [open, setOpen] = useState<ReadonlySet<number>>(() => firstOpen(nodes));
  const [active, setActive] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  useEffect(() => {
    setOpen(firstOpen(nodes));
    setActive(0);
  }, [nodes]);
  const rows = useMemo(() => belowRows(nodes, children, open), [nodes, children, open]);
  const sight = useVirtual(rows.length, scroller, ROW, 0);
  const whole = nodes[0]?.totalNs ?? 0;
  const toggle = (index: number, isOpen: boolean): void => {
    const next = new Set(open);
    if (isOpen) {
      next.add(index);
    } else {
      next.delete(index);
    }
    setOpen(next);
  };
  const goTo = (at: number): void => {
    const next = Math.max(0, Math.min(at, rows.length - 1));
    setActive(next);
    sight.show(next);
  };
  const pressed = (event: KeyboardEvent): void => {
    const act = keyAction(event.key, rows, Math.min(active, rows.length - 1), toggle, goTo);
    if (act !== undefined) {
      event.preventDefault();
      act();
    }
  };
  if (nodes.length < 2) {
    return <p class="muted">Nothing is known of what is below.</p>;
  }
  return (
    <>
      <p class="belowtools">
        <button type="button" onClick={() => setOpen(new Set(nodes.keys()))}>
          Expand
        </button>
        <button type="button" onClick={() => setOpen(new Set([0]))}>
          Collapse
        </button>
        <span class="muted">{count(nodes.length - 1)} parts</span>
        {leftOut > 0 && <span class="muted">{count(leftOut)} smaller ones are left out</span>}
      </p>
      <div
        class="belowtree"
        role="tree"
        aria-label="Below the line"
        tabIndex={0}
        ref={scroller}
        style={{ height: `${Math.min(rows.length, MOST_ROWS) * ROW}px` }}
        aria-activedescendant={`below-${Math.min(active, rows.length - 1)}`}
        onKeyDown={pressed}
      >
        <div style={{ paddingTop: `${sight.before}px`, paddingBottom: `${sight.after}px` }}>
          {sight.items.map(({ index: at }) => {
            const row = rows[at];
            return row === undefined ? null : (
              <Row
                key={row.index}
                row={row}
                at={at}
                name={row.index === 0 ? "this line" : shortName(nodes, row.index)}
                whole={whole}
                isActive={at === active}
                clicked={() => {
                  setActive(at);
                  toggle(row.index, !row.isOpen);
                }}
              />
            );
          })}
        </div>
      </div>
    </>
  );
}

interface RowProps {
  readonly row: BelowRow;
  readonly at: number;
  readonly name: string;
  readonly whole: number;
  readonly isActive: boolean;
  readonly clicked: () => void;
}

function Row({ row, at, name, whole, isActive, clicked }: RowProps): JSX.Element {
  const { node } = row;
  const part = whole > 0 ? node.totalNs / whole : 0;
  const shown = node.kind === "other" ? "small parts" : name;
  return (
    <div
      id={`below-${at}`}
      class={`belowrow ${isActive ? "active" : ""}`}
      role="treeitem"
      aria-level={row.depth + 1}
      aria-expanded={row.hasChildren ? row.isOpen : undefined}
      title={titleOf(node)}
      style={{ paddingLeft: `${4 + Math.min(row.depth, 14) * 12}px`, "--part": part }}
      onClick={clicked}
    >
      <span class="twist" aria-hidden>
        {row.hasChildren ? (row.isOpen ? "▾" : "▸") : ""}
      </span>
      <span class={`kind kind-${node.kind}`} aria-label={KIND_WORDS[node.kind]} />
      <span class="name">
        {node.file !== "" && node.line > 0 && row.index > 0 ? <Place of={node} words={shown} /> : shown}
        {node.layers > 1 && <span class="muted"> ×{node.layers}</span>}
      </span>
      <span class="number muted">{count(node.calls)}×</span>
      <span class="number">{duration(node.totalNs)}</span>
      <span class="number share">{share(part)}</span>
    </div>
  );
}

function titleOf(node: BelowNode): string {
  const backward = node.backwardNs > 0 ? `, ${duration(node.backwardNs)} of it backward` : "";
  const own = node.selfNs > 0 && node.selfNs !== node.totalNs ? `, ${duration(node.selfNs)} its own` : "";
  return `${KIND_WORDS[node.kind]} ${node.name}${node.place === "" ? "" : ` at ${node.place}`}: ${duration(node.totalNs)}${own}${backward}, ${count(node.calls)} calls`;
}

/** What a key does; undefined for nothing. */
function keyAction(
  key: string,
  rows: readonly BelowRow[],
  at: number,
  toggle: (index: number, isOpen: boolean) => void,
  goTo: (at: number) => void,
): (() => void) | undefined {
  const row = rows[at];
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -rows.length, End: rows.length }[key];
  if (step !== undefined) {
    return () => goTo(at + step);
  }
  if (row === undefined) {
    return undefined;
  }
  if (key === "ArrowRight" && row.hasChildren) {
    return () => (row.isOpen ? goTo(at + 1) : toggle(row.index, true));
  }
  if (key === "ArrowLeft") {
    return row.isOpen ? () => toggle(row.index, false) : () => goTo(rows.findLastIndex((one, place) => place < at && one.depth < row.depth));
  }
  return (key === "Enter" || key === " ") && row.hasChildren ? () => toggle(row.index, !row.isOpen) : undefined;
}

interface BelowRow {
  readonly node: BelowNode;
  /** In the answer's list. */
  readonly index: number;
  readonly depth: number;
  readonly hasChildren: boolean;
  readonly isOpen: boolean;
}

const OPEN_SHARE = 0.25;
const MOST_OPEN = 24;

/** The children of each node in their order; those of the line itself are the last list's. */
export function childrenOf(nodes: readonly BelowNode[]): readonly (readonly number[])[] {
  const children: number[][] = nodes.map(() => []);
  nodes.forEach(({ parent }, index) => {
    if (index > 0) {
      children[Math.max(parent, 0)]?.push(index);
    }
  });
  return children;
}

/** Which nodes are open at first: the line, and what has a good part of it, as far as a panel has room. */
export function firstOpen(nodes: readonly BelowNode[]): Set<number> {
  const least = (nodes[0]?.totalNs ?? 0) * OPEN_SHARE;
  const large = nodes.flatMap(({ totalNs }, index) => (totalNs >= least && totalNs > 0 ? [index] : []));
  return new Set([0, ...large.slice(0, MOST_OPEN)]);
}

/** The rows that are to be seen. */
export function belowRows(nodes: readonly BelowNode[], children: readonly (readonly number[])[], open: ReadonlySet<number>): BelowRow[] {
  const rows: BelowRow[] = [];
  const waiting: [number, number][] = nodes.length > 0 ? [[0, 0]] : [];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [index, depth] = next;
    const node = nodes[index];
    const below = children[index] ?? [];
    if (node === undefined) {
      continue;
    }
    const isOpen = below.length > 0 && open.has(index);
    rows.push({ node, index, depth, hasChildren: below.length > 0, isOpen });
    if (isOpen) {
      waiting.push(...below.map((child): [number, number] => [child, depth + 1]).reverse());
    }
  }
  return rows;
}

/** Of a module its path below the module that it stands in: `.mlp`. */
export function shortName(nodes: readonly BelowNode[], index: number): string {
  const node = nodes[index];
  if (node?.kind !== "module") {
    return node?.name ?? "";
  }
  for (let at = node.parent; at >= 0; at = nodes[at]?.parent ?? -1) {
    const above = nodes[at];
    if (above?.kind === "module") {
      return node.name.startsWith(`${above.name}.`) ? node.name.slice(above.name.length) : node.name;
    }
  }
  return node.name;
}
