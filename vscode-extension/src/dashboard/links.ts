/** What hands a line to a command or to the dashboard: a link in Markdown, a row of a view, the flame graph's address. */

import type { Place } from "../places";
import { recordedLine, type RecordedLine } from "../server/contract";
import { natural, object, readOr, text, type Reader } from "../shape";
import { keptDepth } from "../depths";

/** A line of a text in the editor. */
export const textPlace: Reader<Place> = object({ uri: text, line: natural });

/** A link of constant words; nothing in the place ends it early. */
export function commandLink(words: string, command: string, place: Place): string {
  const argument = encodeURIComponent(JSON.stringify([place])).replace(/[()'*!~]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
  return `[${words}](command:${command}?${argument})`;
}

/** The line that a row of a view stands for; undefined for a row of none, and for what else a menu hands over (a `Uri` has a `path`, too). */
export function recordedOf(row: { readonly line?: unknown; readonly path?: unknown; readonly gone?: unknown } | null | undefined): RecordedLine | undefined {
  return readOr(recordedLine, row?.line) ?? readOr(recordedLine, row?.path) ?? readOr(recordedLine, row?.gone);
}

const STATE_DEPTH = "deepscope.flameGraph.depth";

/** What VS Code keeps for a workspace. */
interface Kept {
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
