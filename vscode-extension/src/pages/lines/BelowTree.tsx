/** What a line's work is made of: modules, library lines, operators and kernels, as a tree whose rows open. */

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { BelowNode } from "../contract";
import { KIND_WORDS } from "../../depths";
import { Place } from "../parts/Place";
import { toggled } from "../parts/Controls";
import { count, duration, share } from "../words";
import { Tree, type TreeRow } from "./Tree";

const MOST_ROWS = 22;

interface Props {
  readonly nodes: readonly BelowNode[];
  readonly leftOut: number;
}

export function BelowTree({ nodes, leftOut }: Props): JSX.Element {
  const children = useMemo(() => childrenOf(nodes), [nodes]);
  const [open, setOpen] = useState<ReadonlySet<number>>(() => firstOpen(nodes));
  useEffect(() => setOpen(firstOpen(nodes)), [nodes]);
  const rows = useMemo(() => belowRows(nodes, children, open), [nodes, children, open]);
  const whole = nodes[0]?.totalNs ?? 0;
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
      <Tree
        name="below"
        label="Below the line"
        rows={rows}
        height={MOST_ROWS}
        of={nodes}
        act={({ key, isOpen }) => isOpen !== undefined && setOpen(toggled(open, key))}
        lookOf={({ node, key, depth }) => {
          const part = whole > 0 ? node.totalNs / whole : 0;
          const name = key === 0 ? "this line" : node.kind === "other" ? "small parts" : shortName(nodes, key);
          return { title: titleOf(node), indent: 4 + Math.min(depth, 14) * 12, part, content: <Cells node={node} name={name} part={part} isLink={key > 0} /> };
        }}
      />
    </>
  );
}

interface CellsProps {
  readonly node: BelowNode;
  readonly name: string;
  readonly part: number;
  readonly isLink: boolean;
}

function Cells({ node, name, part, isLink }: CellsProps): JSX.Element {
  return (
    <>
      <span class={`kind kind-${node.kind}`} aria-label={KIND_WORDS[node.kind]} />
      <span class="name">
        {node.file !== "" && node.line > 0 && isLink ? <Place of={node} words={name} /> : name}
        {node.layers > 1 && <span class="muted"> ×{node.layers}</span>}
      </span>
      <span class="number muted">{count(node.calls)}×</span>
      <span class="number">{duration(node.totalNs)}</span>
      <span class="number share">{share(part)}</span>
    </>
  );
}

function titleOf(node: BelowNode): string {
  const backward = node.backwardNs > 0 ? `, ${duration(node.backwardNs)} of it backward` : "";
  const own = node.selfNs > 0 && node.selfNs !== node.totalNs ? `, ${duration(node.selfNs)} its own` : "";
  return `${KIND_WORDS[node.kind]} ${node.name}${node.place === "" ? "" : ` at ${node.place}`}: ${duration(node.totalNs)}${own}${backward}, ${count(node.calls)} calls`;
}

interface BelowRow extends TreeRow {
  readonly node: BelowNode;
  /** In the answer's list. */
  readonly key: number;
}

const OPEN_SHARE = 0.25;
const MOST_OPEN = 24;

/** The children of each node in their order; what has no parent is below the line itself. */
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
    const isOpen = below.length > 0 ? open.has(index) : undefined;
    rows.push({ node, key: index, depth, isOpen });
    if (isOpen === true) {
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
