/** Round numbers on an axis. */

export interface Axis {
  readonly low: number;
  readonly high: number;
  readonly ticks: readonly number[];
}

/** An axis from `low` to `high`, widened to round numbers, with about `count` ticks. */
export function axis(low: number, high: number, count = 5): Axis {
  if (!Number.isFinite(low) || !Number.isFinite(high)) {
    return axis(0, 1, count); // there is no value
  }
  const span = high > low ? high - low : Math.abs(high) || 1;
  const rough = span / count;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = magnitude * ([1, 2, 5].find((factor) => factor * magnitude >= rough) ?? 10);
  const first = Math.floor(low / step);
  const last = Math.max(Math.ceil(high / step), first + 1);
  const ticks = Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
  return { low: first * step, high: last * step, ticks };
}

/** Where a value lies between 0 and `length`. */
export function position(value: number, { low, high }: Axis, length: number): number {
  return ((value - low) / (high - low)) * length;
}
