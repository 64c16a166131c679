/** The traces that TensorBoard shows: those of one run. */

import { parentOf } from "../views/runRows";

export interface Shown {
  /** Arguments for `board.py`; equal arguments show the same. */
  readonly words: readonly string[];
  readonly title: string;
}

/** These traces alone: other runs' traces in the same folder are not workers of this one. */
export function only(paths: readonly string[]): Shown {
  const [first = ""] = paths;
  return { words: paths.flatMap((path) => ["--trace", path]), title: paths.length === 1 ? first : `${parentOf(first)} (${paths.length} traces of one run)` };
}

export function isSame(one: Shown, other: Shown | undefined): boolean {
  return one.words.join("\0") === other?.words.join("\0");
}
