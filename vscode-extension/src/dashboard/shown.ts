/** What a dashboard is of: the traces of a run. */

import { parentOf } from "../views/runRows";

export interface Shown {
  /** For `dashboard.py`; two of the same are the same. */
  readonly words: readonly string[];
  readonly title: string;
}

/** These traces alone: what other runs left in their folder does not count as further workers of this one. */
export function only(paths: readonly string[]): Shown {
  const [first = ""] = paths;
  return { words: paths.flatMap((path) => ["--trace", path]), title: paths.length === 1 ? first : `${parentOf(first)} (${paths.length} traces of one run)` };
}

export function isSame(one: Shown, other: Shown | undefined): boolean {
  return one.words.join("\0") === other?.words.join("\0");
}
