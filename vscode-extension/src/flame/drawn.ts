/** The server's flame graph as the page draws it: names and times, without paths to open. */

import type { FlameGraph, FlameNode } from "../server/contract";
import type { DrawnNode } from "./messages";

const NAME_LIMIT = 200;
/** Narrower than this of the whole, a frame cannot be seen, and a large tree would take long to draw. */
const SMALLEST_SHARE = 0.0005;

export function drawnTree(graph: FlameGraph): DrawnNode {
  const least = graph.total * SMALLEST_SHARE;
  return {
    name: "all",
    place: "",
    frame: -1,
    value: graph.total,
    self: 0,
    children: drawnNodes(graph.roots, graph, least),
  };
}

function drawnNodes(nodes: readonly FlameNode[], graph: FlameGraph, least: number): DrawnNode[] {
  return nodes
    .filter((node) => node.value > 0 && node.value >= least)
    .map((node) => ({ ...named(node.frame, graph), frame: node.frame, value: node.value, self: node.self, children: drawnNodes(node.children, graph, least) }));
}

function named(frame: number, graph: FlameGraph): { readonly name: string; readonly place: string } {
  const line = graph.frames[frame];
  if (line === undefined) {
    return { name: "(no user line)", place: "" };
  }
  const file = line.file.split(/[/\\]/).at(-1) ?? line.file;
  const place = `${file}:${line.currentLine ?? line.line}`;
  return { name: `${line.function} ${place}`.slice(0, NAME_LIMIT), place: `${line.file}:${line.line}`.slice(-NAME_LIMIT) };
}

/** The frame of a line, as recorded or as it stands here; the one with the most time where it has several. */
export function frameOf(
  graph: FlameGraph,
  key: { readonly uri?: string; readonly file?: string; readonly line: number },
): number | undefined {
  const frame = graph.frames.findIndex((line) =>
    key.uri !== undefined ? line.uri === key.uri && line.currentLine === key.line : line.file === key.file && line.line === key.line,
  );
  return frame < 0 ? undefined : frame;
}
