/** The flame graph among the dashboard's pages: its address, with the depth that was chosen there last. */

import { keptDepth } from "../depths";
import type { RecordedLine } from "../server/contract";

const STATE_DEPTH = "deepscope.flameGraph.depth";

/** What VS Code keeps for a workspace. */
export interface Kept {
  get(key: string): unknown;
  update(key: string, value: unknown): PromiseLike<void>;
}

/** Its address; with a line all boxes of that are marked. */
export function flameAddress(kept: Kept, line?: RecordedLine): string {
  const place: Readonly<Record<string, string>> = line === undefined ? {} : { file: line.file, line: String(line.line) };
  return `#/flame?${new URLSearchParams({ depth: keptDepth(kept.get(STATE_DEPTH), "kernel"), ...place }).toString()}`;
}

/** Whether an address is the flame graph's; the depth in it is kept. */
export async function sawFlameGraph(kept: Kept, hash: string): Promise<boolean> {
  const [page, query = ""] = hash.split("?");
  const depth = new URLSearchParams(query).get("depth");
  if (page === "#/flame" && depth !== null) {
    await kept.update(STATE_DEPTH, depth);
  }
  return page === "#/flame";
}
