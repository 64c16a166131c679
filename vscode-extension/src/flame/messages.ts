/** What the flame graph's page and the extension say to each other. */

import { finite, flag, list, literal, natural, nullable, object, text, union, type Reader } from "../shape";
import { depth, flameMetric, frameKind, type FrameKind } from "../server/contract";

/** What a frame's boxes are called. */
const frameLabel = object({ name: text, place: text });
export type FrameLabel = ReturnType<typeof frameLabel>;

/** A node as it is drawn; `frame` says to the extension what it is, -1 for no line. */
export interface DrawnNode extends FrameLabel {
  readonly frame: number;
  readonly kind: FrameKind;
  /** The frame that a click goes to: of a part without a file that is here the line whose work it is. */
  readonly opens: number;
  readonly value: number;
  readonly self: number;
  /** Its times, as the server words them. */
  readonly words: string;
  readonly children: readonly DrawnNode[];
}
const drawnNode: Reader<DrawnNode> = (value, at) =>
  object({
    name: text,
    place: text,
    frame: finite,
    kind: frameKind,
    opens: finite,
    value: finite,
    self: finite,
    words: text,
    children: list(drawnNode),
  })(value, at);

/** What a menu in the page is about, as the editor hands it to a command. */
export const boxOfMenu = object({ frame: natural });

/** From the extension to its page. */
export const toPage = union({
  graph: object({
    type: literal("graph"),
    root: drawnNode,
    metric: flameMetric,
    metrics: list(flameMetric),
    depth,
    depths: list(depth),
    rank: nullable(natural),
    ranks: list(natural),
    caption: text,
    isDevice: flag,
  }),
  /** Lines have moved: the frames' new labels, by their numbers. */
  labels: object({ type: literal("labels"), labels: list(frameLabel) }),
  /** Marks all boxes of a line. */
  mark: object({ type: literal("mark"), frames: list(natural) }),
  empty: object({ type: literal("empty"), message: text }),
});
export type ToPage = ReturnType<typeof toPage>;

/** From the page to the extension: indexes and words of our own alone, never a path. */
export const fromPage = union({
  ready: object({ type: literal("ready") }),
  open: object({ type: literal("open"), frame: natural }),
  choose: object({ type: literal("choose"), metric: flameMetric, rank: nullable(natural), depth }),
});
export type FromPage = ReturnType<typeof fromPage>;
