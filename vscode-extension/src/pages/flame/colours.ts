/**
 * The colours of boxes: the hue says what a box is, and the deeper it is, the more of the whole is the box's own time.
 * What is below a line is the line's own: its colour is the same however far down the graph goes.
 *
 * Boxes are light in every theme, and their words black on them.
 */

import type { NodeKind } from "../contract";
import type { Box } from "./boxes";

/** In the order in which they hold each other. */
export const KINDS: readonly NodeKind[] = ["line", "module", "library", "operator", "kernel", "other"];

const GREY = "#b8b8b8";
/** Hues in degrees, of a box without time of its own and of one with much. Lines go from yellow to red. */
const HUES: Readonly<Record<Exclude<NodeKind, "other">, readonly [number, number]>> = {
  line: [48, 8],
  module: [212, 212],
  library: [178, 178],
  operator: [96, 96],
  kernel: [330, 330],
};
/** From this share of the whole on a box has the deepest colour. */
const MUCH = 1 / 3;

/** What a box's colour is made of. */
interface Coloured extends Pick<Box, "kind" | "frame" | "value" | "self"> {
  readonly children: readonly Coloured[];
}

/** The colour of a box in a graph of so much time. */
export function boxColour(box: Coloured, whole: number): string {
  return box.frame < 0 ? GREY : kindColour(box.kind, whole > 0 ? Math.min(1, own(box) / whole / MUCH) : 0);
}

function own({ kind, value, self, children }: Coloured): number {
  const calls = children.filter((child) => child.kind === "line");
  return kind === "line" ? calls.reduce((left, child) => left - child.value, value) : self;
}

/** The colour of a kind; `own` is 0 for the palest, 1 for the deepest. */
export function kindColour(kind: NodeKind, own = 0): string {
  if (kind === "other") {
    return GREY;
  }
  const [pale, deep] = HUES[kind];
  const [saturation, lightness] = kind === "line" ? [90, 68 - 8 * own] : [50 + 25 * own, 80 - 12 * own];
  return `hsl(${Math.round(pale + (deep - pale) * own)} ${Math.round(saturation)}% ${Math.round(lightness)}%)`;
}
