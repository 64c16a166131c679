/** The tree below a line as rows: which are open, which are to be seen, where a key leads. */

import type { BelowNode } from "../contract";

export interface BelowRow {
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
