/** Who calls a line and what it calls, from the tree of all call paths. */

import type { CallPath, RecordedLine } from "../server/contract";

/** A line in a chain of calls; `children` are its callers or its callees, the largest time first. */
export interface PathRow {
  readonly id: string;
  readonly path: CallPath;
  /** Time of the chosen line on the paths through this row; for callees, their own total. */
  readonly ns: number;
  readonly children: readonly PathRow[];
}

export interface CallPathRows {
  /** The chosen line itself; undefined where it is on no path. */
  readonly line: CallPath | undefined;
  readonly callers: readonly PathRow[];
  readonly callees: readonly PathRow[];
}

/** Recursion and broken traces may nest deeply; nobody reads so far down. */
const DEPTH_LIMIT = 100;

export function callPathRows(roots: readonly CallPath[], line: RecordedLine): CallPathRows {
  const chains: { readonly above: readonly CallPath[]; readonly node: CallPath }[] = [];
  const visit = (nodes: readonly CallPath[], above: readonly CallPath[]): void => {
    for (const node of nodes) {
      // The outermost occurrence holds the time of those below it.
      if (isLine(node, line)) {
        chains.push({ above, node });
      } else if (above.length < DEPTH_LIMIT) {
        visit(node.children, [...above, node]);
      }
    }
  };
  visit(roots, []);
  return {
    line: chains[0]?.node,
    callers: callersOf(chains.map(({ above, node }) => ({ above, ns: timeOf(node) })), "callers"),
    callees: calleesOf(chains.flatMap(({ node }) => node.children), "callees", 0),
  };
}

/** The time that a row shows: on the device, where there is any; else on the CPU. */
export function timeOf(node: CallPath): number {
  return node.totalNs > 0 ? node.totalNs : node.totalCpuNs;
}

interface Chain {
  readonly above: readonly CallPath[];
  readonly ns: number;
}

function callersOf(chains: readonly Chain[], id: string): PathRow[] {
  const called = chains.filter(({ above }) => above.length > 0);
  return sorted(
    [...groupBy(called, ({ above }) => nameOf(above.at(-1)))].flatMap(([name, members]) => {
      const path = members[0]?.above.at(-1);
      if (path === undefined) {
        return [];
      }
      const rowId = `${id}>${name}`;
      const further = members.map(({ above, ns }) => ({ above: above.slice(0, -1), ns }));
      return [{ id: rowId, path, ns: sumOf(members, ({ ns }) => ns), children: callersOf(further, rowId) }];
    }),
  );
}

function calleesOf(nodes: readonly CallPath[], id: string, depth: number): PathRow[] {
  if (depth > DEPTH_LIMIT) {
    return [];
  }
  return sorted(
    [...groupBy(nodes, nameOf)].flatMap(([name, same]) => {
      const [path] = same;
      if (path === undefined) {
        return [];
      }
      const rowId = `${id}>${name}`;
      const below = same.flatMap((node) => node.children);
      return [{ id: rowId, path, ns: sumOf(same, timeOf), children: calleesOf(below, rowId, depth + 1) }];
    }),
  );
}

function isLine(node: CallPath, line: RecordedLine): boolean {
  return node.file === line.file && node.line === line.line;
}

function nameOf(node: CallPath | undefined): string {
  return `${node?.file ?? ""}:${node?.line ?? 0}`;
}

function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = key(item);
    const group = groups.get(name);
    if (group === undefined) {
      groups.set(name, [item]);
    } else {
      group.push(item);
    }
  }
  return groups;
}

function sumOf<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((sum, item) => sum + value(item), 0);
}

function sorted(rows: readonly PathRow[]): PathRow[] {
  return [...rows].sort((one, other) => other.ns - one.ns || (one.id < other.id ? -1 : 1));
}
