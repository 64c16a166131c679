/** Ranks as a table, and how far each number is above the least of its column. */

import type { CellKind, RankRow, Table } from "../contract";

interface RankNumber {
  readonly key: keyof RankRow;
  readonly title: string;
  readonly kind: CellKind;
  readonly help: string;
}

const NUMBERS: readonly RankNumber[] = [
  { key: "stepNs", title: "step", kind: "time", help: "Mean wall time of a step." },
  { key: "ownNs", title: "own", kind: "time", help: "The step without the part in which only communication runs." },
  { key: "computeNs", title: "compute", kind: "time", help: "Work that is no collective; without a device operators' own time." },
  { key: "communicationNs", title: "communication", kind: "time", help: "In collectives, summed." },
  { key: "exposedNs", title: "exposed", kind: "time", help: "The part of communication that no computation overlaps." },
  { key: "waitedNs", title: "waiting for others", kind: "time", help: "In collectives, until the last rank has come." },
  { key: "last", title: "came last", kind: "count", help: "Calls of collectives that this rank came to last." },
  { key: "idleNs", title: "device idle", kind: "time", help: "When no stream of a device works." },
  { key: "dataNs", title: "data", kind: "time", help: "Loading data, on the training thread." },
  { key: "syncNs", title: "waiting for device", kind: "time", help: "CPU time in calls that wait for the device." },
  { key: "peakBytes", title: "peak memory", kind: "bytes", help: "The most that was allocated at once." },
];

/** The ranks with the longest own time first. */
export function slowestFirst(ranks: readonly RankRow[]): readonly RankRow[] {
  return [...ranks].sort((one, other) => other.ownNs - one.ownNs || one.rank - other.rank);
}

/** Columns that say nothing of any rank are left out. */
export function rankTable(ranks: readonly RankRow[]): Table {
  const used = NUMBERS.filter(({ key }) => ranks.some((row) => Boolean(row[key])));
  const hosts = new Set(ranks.map(({ host }) => host));
  return {
    id: "ranks",
    title: "Ranks",
    columns: [
      { key: "rank", title: "rank", kind: "text", help: "", rank: 0 },
      ...used.map(({ key, title, kind, help }, place) => ({ key, title, kind, help, rank: place })),
      ...(hosts.size > 1 ? [{ key: "host", title: "host", kind: "text" as const, help: "", rank: 20 }] : []),
    ],
    rows: ranks.map((row) => [`rank ${row.rank}`, ...used.map(({ key }) => row[key] as number | null), ...(hosts.size > 1 ? [row.host] : [])]),
    files: [],
    places: ranks.map(() => [-1, 0]),
    parents: [],
    keys: ranks.map(({ rank }) => String(rank)),
    leftOut: 0,
  };
}

/** By column, of each row: how far it is above the least, as a share of the largest. Where all are alike it is 0. */
export function heatOf({ columns, rows }: Table): ReadonlyMap<string, readonly number[]> {
  return new Map(
    columns.flatMap(({ key, kind }, at): (readonly [string, readonly number[]])[] => {
      if (kind !== "time" && kind !== "count") {
        return [];
      }
      const values = rows.map((row) => row[at]).map((value) => (typeof value === "number" ? value : 0));
      const [least, most] = [Math.min(...values), Math.max(...values)];
      return [[key, values.map((value) => (most > 0 ? (value - least) / most : 0))]];
    }),
  );
}
