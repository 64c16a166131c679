/** The time of boxes of a flame graph together. */

import type { PlacedNode } from "d3-flame-graph";

/** The sum over boxes; one inside another one is not counted again. */
export function outerSum<T extends { readonly value: number }>(boxes: readonly PlacedNode<T>[]): number {
  const found = new Set(boxes);
  const outer = boxes.filter((box) => !box.ancestors().slice(1).some((above) => found.has(above)));
  return outer.reduce((whole, { data }) => whole + data.value, 0);
}
