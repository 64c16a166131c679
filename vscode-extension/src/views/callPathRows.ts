/** Rows of the Call Paths view, each with an id of its own. */

import type { LinePath } from "../server/contract";

/** A line in a chain of calls. */
export interface PathRow {
  readonly id: string;
  readonly path: LinePath;
  readonly children: readonly PathRow[];
}

export function pathRows(paths: readonly LinePath[], above: string): PathRow[] {
  return paths.map((path) => {
    const id = `${above}>${path.file}:${path.line}`;
    return { id, path, children: pathRows(path.children, id) };
  });
}
