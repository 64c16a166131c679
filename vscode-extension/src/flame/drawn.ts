/** The server's flame graph as the page draws it: names and times, without paths to open. */

import type { FlameGraph, FlameNode, RecordedLine } from "../server/contract";
import { placeName } from "../views/placeNames";
import type { DrawnNode, FrameLabel } from "./messages";

const NAME_LIMIT = 200;
const NO_LINE: FrameLabel = { name: "(no user line)", place: "" };

/** The tree, with the times of one step. */
export function drawnTree(graph: FlameGraph): DrawnNode {
  const labels = frameLabels(graph);
  const drawn = (nodes: readonly FlameNode[]): DrawnNode[] =>
    nodes.map(({ frame, valuePerStep, selfPerStep, words, children }) => ({
      ...(labels[frame] ?? NO_LINE),
      frame,
      value: valuePerStep,
      self: selfPerStep,
      words,
      children: drawn(children),
    }));
  const words = `${graph.totalWords} · 100 %`;
  return { name: "all", place: "", frame: -1, value: graph.totalPerStep, self: 0, words, children: drawn(graph.roots) };
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
