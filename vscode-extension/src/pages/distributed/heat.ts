/** How far ranks are above the others, as shades. */

import type { Distributed, Table } from "../contract";

export interface Block {
  readonly label: string;
  /** Places in `Distributed.ranks`. */
  readonly places: readonly number[];
}

const IN_A_BLOCK = 8;

/** Places of the ranks, the longest own time first. */
export function slowestFirst({ ownNs, ranks }: Pick<Distributed, "ownNs" | "ranks">): readonly number[] {
  return ranks.map((_, place) => place).sort((one, other) => (ownNs[other] ?? 0) - (ownNs[one] ?? 0) || one - other);
}

/** How many of `levels` (percent, the least first) an own time is above the median; -1 where it is below by more than the first. */
export function levelOf(ownNs: number, medianNs: number, levels: readonly number[]): number {
  const above = medianNs > 0 ? (100 * (ownNs - medianNs)) / medianNs : 0;
  return above < -(levels[0] ?? 0) ? -1 : levels.filter((least) => above >= least).length;
}

/** `+38 %` above the median; "" where there is none. */
export function aboveWords(ownNs: number, medianNs: number): string {
  if (medianNs <= 0) {
    return "";
  }
  const percent = Math.round((100 * (ownNs - medianNs)) / medianNs);
  return `${percent > 0 ? "+" : percent < 0 ? "−" : ""}${Math.abs(percent)} %`;
}

/** A block for each host; where there is one host or none is known, for each eight ranks. */
export function blocksOf({ hosts, hostOf, ranks }: Pick<Distributed, "hosts" | "hostOf" | "ranks">): readonly Block[] {
  if (hosts.length > 1) {
    const places = hosts.map((): number[] => []);
    hostOf.forEach((host, place) => places[host]?.push(place));
    return hosts.map((host, at) => ({ label: host === "" ? "host unknown" : host, places: places[at] ?? [] }));
  }
  const blocks: Block[] = [];
  for (let first = 0; first < ranks.length; first += IN_A_BLOCK) {
    const places = ranks.slice(first, first + IN_A_BLOCK).map((_, place) => first + place);
    const [from, to] = [ranks[first] ?? 0, ranks[first + places.length - 1] ?? 0];
    blocks.push({ label: from === to ? `${from}` : `${from}–${to}`, places });
  }
  return blocks;
}

/** By column, of each row: how far it is above the least, as a share of the largest. Where all are alike it is 0. */
export function heatOf({ columns, rows }: Table): ReadonlyMap<string, readonly number[]> {
  return new Map(
    columns.flatMap(({ key, kind }, at): (readonly [string, readonly number[]])[] => {
      if ((kind !== "time" && kind !== "count") || key === "steps") {
        return [];
      }
      const values = rows.map((row) => row[at]);
      const known = values.filter((value) => typeof value === "number");
      const [least, most] = [Math.min(...known), Math.max(...known)];
      return [[key, values.map((value) => (typeof value === "number" && most > 0 ? (value - least) / most : 0))]];
    }),
  );
}
