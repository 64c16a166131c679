/** The answer's columns as the tree that is drawn, and the colours of its boxes. These are light in every theme, and their words black on them. */

import type { Flame, FlameFrame, NodeKind } from "../contract";

export interface Box {
  readonly name: string;
  readonly kind: NodeKind;
  /** -1 for no line; as the colours take it. */
  readonly frame: number;
  readonly file: string;
  readonly line: number;
  readonly place: string;
  value: number;
  self: number;
  /** The baseline's time, for as many steps. */
  before: number;
  readonly children: Box[];
}

const NOTHING: FlameFrame = { kind: "other", name: "?", file: "", line: 0, place: "" };

/** The tree; boxes without time now are left out. */
export function boxesOf(flame: Flame): Box {
  const root: Box = { ...NOTHING, name: "all", frame: 0, value: flame.leftOutNs, self: flame.leftOutNs, before: 0, children: [] };
  const boxes = flame.shown.map((frame, node): Box => {
    const shown = flame.frames[frame] ?? NOTHING;
    const isNone = shown.kind === "line" && shown.line === 0;
    const own = flame.own[node] ?? 0;
    return { ...shown, frame: isNone ? -1 : frame, value: own, self: own, before: flame.before[node] ?? 0, children: [] };
  });
  for (let node = boxes.length - 1; node >= 0; node -= 1) {
    const [box, above] = [boxes[node], boxes[flame.parents[node] ?? -1] ?? root];
    if (box !== undefined) {
      above.value += box.value;
      above.before += box.before;
      if (box.value > 0) {
        above.children.push(box);
      }
    }
  }
  root.before = flame.beforeNs;
  return root;
}

/** Where a box leads to, given it and what holds it, innermost first: to its own place, else to the line whose work it is. */
export function leadsTo(boxes: readonly Box[]): Box | undefined {
  return boxes.find((box, at) => box.file !== "" && box.line > 0 && (at === 0 || box.kind === "line"));
}

/** From -1 (all of it is gone) to 1: by how much a box changed, as a share of the larger of both wholes. */
export function change(box: Pick<Box, "value" | "before">, root: Pick<Box, "value" | "before">): number {
  const whole = Math.max(root.value, root.before, 1);
  return Math.max(-1, Math.min(1, (box.value - box.before) / whole));
}

/** From this share of the whole on a change has the deepest colour. */
const FULL = 0.1;
const RED = [178, 24, 43] as const;
const BLUE = [33, 102, 172] as const;
const NEUTRAL = [242, 242, 242] as const;

/** Red for slower, blue for faster: a pair that the colour-blind tell apart. */
export function changeColour(share: number): string {
  const [to, part] = [share > 0 ? RED : BLUE, Math.sqrt(Math.min(1, Math.abs(share) / FULL)) * 0.62];
  return `rgb(${NEUTRAL.map((from, at) => Math.round(from + ((to[at] ?? from) - from) * part)).join(" ")})`;
}

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

/**
 * The colour of a box in a graph of so much time: the hue says what a box is, and the deeper it is, the more of the whole is the box's own
 * time. What is below a line is the line's own: its colour is the same however far down the graph goes.
 */
export function boxColour(box: Coloured, whole: number): string {
  return box.frame < 0 ? GREY : kindColour(box.kind, whole > 0 ? Math.min(1, ownTime(box) / whole / MUCH) : 0);
}

function ownTime({ kind, value, self, children }: Coloured): number {
  const calls = children.filter((child) => child.kind === "line");
  return kind === "line" ? calls.reduce((left, child) => left - child.value, value) : self;
}

/** The colour of a kind; `ownTime` is 0 for the palest, 1 for the deepest. */
export function kindColour(kind: NodeKind, ownTime = 0): string {
  if (kind === "other") {
    return GREY;
  }
  const [pale, deep] = HUES[kind];
  const [saturation, lightness] = kind === "line" ? [90, 68 - 8 * ownTime] : [50 + 25 * ownTime, 80 - 12 * ownTime];
  return `hsl(${Math.round(pale + (deep - pale) * ownTime)} ${Math.round(saturation)}% ${Math.round(lightness)}%)`;
}
