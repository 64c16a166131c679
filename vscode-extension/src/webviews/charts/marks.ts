/** What a chart over two axes draws, in numbers of its axes: bars, lines and stepped areas, stacked or side by side. */

import type { Series } from "./data";
import { axis, type Axis } from "./ticks";

export type Kind = "bars" | "line" | "area";

export interface Drawn {
  readonly series: Series;
  readonly kind: Kind;
  /** 0 on the left, 1 on the right. */
  readonly side: 0 | 1;
}

/** One value, from `base` to `top`; bars also say which place among those side by side they have. */
export interface Mark {
  readonly row: number;
  readonly base: number;
  readonly top: number;
}

/** The marks of each of `drawn`; what is stacked lies on the series before it, of the same kind and side. */
export function marksOf(drawn: readonly Drawn[], isStacked: boolean): Mark[][] {
  const heights = new Map<string, number>();
  return drawn.map(({ series, kind, side }) =>
    series.values.flatMap((value, row) => {
      if (value === null) {
        return [];
      }
      if (!isStacked || kind === "line") {
        return [{ row, base: 0, top: value }];
      }
      const key = `${kind}/${side}/${row}`;
      const base = heights.get(key) ?? 0;
      heights.set(key, base + value);
      return [{ row, base, top: base + value }];
    }),
  );
}

/** The axis that holds the marks of one side: from 0, but for values below it. Undefined where it has none. */
export function axisOf(drawn: readonly Drawn[], marks: readonly (readonly Mark[])[], side: 0 | 1): Axis | undefined {
  const tops = marks.flatMap((of, at) => (drawn[at]?.side === side ? of.map(({ top }) => top) : []));
  return tops.length === 0 ? undefined : axis(tops.reduce((a, b) => Math.min(a, b), 0), tops.reduce((a, b) => Math.max(a, b), 0));
}

/** Every how many-th label of `count` fits in `width`, each as wide as the widest. */
export function labelStep(count: number, labelWidth: number, width: number): number {
  return Math.max(1, Math.ceil((count * labelWidth) / Math.max(width, 1)));
}
