/** The server's flame graph as the page draws it: names and times, without paths to open. */

import { KIND_WORDS } from "../depths";
import type { FlameGraph, FlameNode, Frame, RecordedLine } from "../server/contract";
import { placeName } from "../views/placeNames";
import type { DrawnNode, FrameLabel } from "./messages";

const NAME_LIMIT = 200;
const NO_LINE: FrameLabel = { name: "(no user line)", place: "" };
const NONE = -1;

/** The tree, with the times of one step. */
export function drawnTree(graph: FlameGraph): DrawnNode {
  const labels = frameLabels(graph);
  const drawn = (nodes: readonly FlameNode[], owner: number): DrawnNode[] =>
    nodes.map(({ frame, valuePerStep, selfPerStep, words, children }) => {
      const shown = graph.frames[frame];
      const opens = shown !== undefined && hasPlace(shown) ? frame : owner;
      const below = shown === undefined || shown.kind === "line" ? frame : owner;
      return {
        ...(labels[frame] ?? NO_LINE),
        frame,
        kind: shown?.kind ?? "line",
        opens,
        value: valuePerStep,
        self: selfPerStep,
        words,
        children: drawn(children, below),
      };
    });
  const words = `${graph.totalWords} · 100 %`;
  const children = drawn(graph.roots, NONE);
  return { name: "all", place: "", frame: NONE, kind: "line", opens: NONE, value: graph.totalPerStep, self: 0, words, children };
}

/** What each frame's boxes are called: by the line as it stands now. */
export function frameLabels(graph: FlameGraph): FrameLabel[] {
  return graph.frames.map((frame) => ({ name: nameOf(frame).slice(0, NAME_LIMIT), place: placeOf(frame) }));
}

/** The frames of a line: one for each function that it runs in (a comprehension's line runs in two). */
export function framesOf(graph: FlameGraph, { file, line }: RecordedLine): number[] {
  return graph.frames.flatMap((frame, number) => (frame.kind === "line" && frame.file === file && frame.line === line ? [number] : []));
}

function nameOf(frame: Frame): string {
  const isLine = frame.kind === "line" || frame.kind === "library";
  return isLine && frame.line > 0 ? `${frame.name} ${placeName(frame)}` : frame.name;
}

/** What is known of it besides its name: of a part what it is, too. */
function placeOf(frame: Frame): string {
  const place = frame.line > 0 ? `${frame.file}:${frame.line}`.slice(-NAME_LIMIT) : "";
  if (frame.kind === "line") {
    return place;
  }
  const whole = frame.kind === "other" || frame.wholeName === frame.name ? "" : ` ${frame.wholeName.slice(0, NAME_LIMIT)}`;
  return [`${KIND_WORDS[frame.kind]}${whole}`, place].filter((part) => part !== "").join(" · ");
}

function hasPlace({ kind, line, uri }: Frame): boolean {
  return kind === "line" || (line > 0 && uri !== null);
}

/** The rank that was chosen, in a run that has it; else all of them together: another run may have other ranks. */
export function rankIn(ranks: readonly number[], chosen: number | null): number | null {
  return chosen !== null && ranks.includes(chosen) ? chosen : null;
}
