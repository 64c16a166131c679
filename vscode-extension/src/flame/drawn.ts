/** The server's flame graph as the page draws it: names and times, without paths to open. */

import type { FlameGraph, FlameNode, RecordedLine } from "../server/contract";
import { placeName } from "../views/placeNames";
import type { DrawnNode, FrameLabel } from "./messages";

const NAME_LIMIT = 200;
/** Narrower than this of the whole, a frame cannot be seen, and a large tree would take long to draw. */
const SMALLEST_SHARE = 0.0005;
const NO_LINE: FrameLabel = { name: "(no user line)", place: "" };

/** The tree, its times divided as the views divide theirs. */
export function drawnTree(graph: FlameGraph, divisor: number): DrawnNode {
  const least = graph.total * SMALLEST_SHARE;
  const labels = frameLabels(graph);
  const drawn = (nodes: readonly FlameNode[]): DrawnNode[] =>
    nodes
      .filter((node) => node.value > 0 && node.value >= least)
      .map((node) => ({
        ...(labels[node.frame] ?? NO_LINE),
        frame: node.frame,
        value: node.value / divisor,
        self: node.self / divisor,
        children: drawn(node.children),
      }));
  return { name: "all", place: "", frame: -1, value: graph.total / divisor, self: 0, children: drawn(graph.roots) };
}

/** What each frame's boxes are called: by the line as it stands now. */
export function frameLabels(graph: FlameGraph): FrameLabel[] {
  return graph.frames.map((frame) => {
    return { name: `${frame.function} ${placeName(frame)}`.slice(0, NAME_LIMIT), place: `${frame.file}:${frame.line}`.slice(-NAME_LIMIT) };
  });
}

/** The frames of a line: one for each function that it runs in (a comprehension's line runs in two). */
export function framesOf(graph: FlameGraph, { file, line }: RecordedLine): number[] {
  return graph.frames.flatMap((frame, number) => (frame.file === file && frame.line === line ? [number] : []));
}
