/** What a chart counts: places of events in order of time, and distances between the marks of an axis. */

/** From and to, in the unit of the axis. */
export type Window = readonly [number, number];

/** The place of the first of some ordered values that is above a limit, between `low` and `high`; `high` if none is. */
export function firstAbove(values: ArrayLike<number>, limit: number, low = 0, high = values.length): number {
  let [from, to] = [low, high];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((values[middle] ?? Infinity) <= limit) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}

/** The place of the last event until a moment, the first if there is none; -1 of no events. */
export function placeOf(at: readonly number[], moment: number): number {
  return Math.min(Math.max(firstAbove(at, moment) - 1, 0), at.length - 1);
}

/** Distances that read well: powers of two, else 1, 2 and 5 by powers of ten. */
export function incrementsWithin(base: 2 | 10): number[] {
  return base === 2
    ? Array.from({ length: 60 }, (_, power) => 2 ** power)
    : Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** power)).flat();
}
