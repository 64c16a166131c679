/** What a chart counts: places of events in order of time, and distances between the marks of an axis. */

/** From and to, in the unit of the axis. */
export type Window = readonly [number, number];

/** The place of the last event until a moment, the first if there is none; -1 of no events. */
export function placeOf(at: readonly number[], moment: number): number {
  let [low, high] = [0, at.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((at[middle] ?? Infinity) <= moment) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return Math.min(Math.max(low - 1, 0), at.length - 1);
}

/** Distances that read well: powers of two, else 1, 2 and 5 by powers of ten. */
export function incrementsWithin(base: 2 | 10): number[] {
  return base === 2
    ? Array.from({ length: 60 }, (_, power) => 2 ** power)
    : Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** power)).flat();
}
