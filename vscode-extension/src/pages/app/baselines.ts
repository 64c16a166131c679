/** Runs, and windows of them, by the words that addresses have for them. */

import type { Run } from "../contract";
import { withWords, type Address } from "./address";

/** The address of this page for another run, all of it. */
export function linkToRun(address: Address, { id }: Pick<Run, "id">): string {
  return withWords(address, { run: id, rank: "", stage: "", step: "", phase: "", module: "" });
}

/** A run as lists have it: its folder, the program, when it was recorded. */
export function titleOf(run: Run): string {
  return [run.name, run.title, timeOf(run)].filter((part) => part !== "").join(" · ");
}

/** When a run was recorded, in the reader's zone; "" where that is not known. */
export function timeOf(run: Run): string {
  const when = new Date(run.recordedAt);
  return Number.isNaN(when.getTime()) ? "" : when.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}

/** The runs in whose title or folder each word of a search stands. */
export function foundRuns(runs: readonly Run[], search: string): readonly Run[] {
  const words = search.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return runs.filter((run) => {
    const text = `${titleOf(run)} ${run.folder}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** What the chosen run (`id`, or `id~window`) can be compared with, by word and title. */
export function baselinesOf(runs: readonly Run[], chosen: string): (readonly [string, string])[] {
  const [base = "", window] = chosen.split("~");
  return runs.flatMap((run): (readonly [string, string])[] => {
    const title = titleOf(run);
    if (run.windows.length < 2) {
      return run.id === base ? [] : [[run.id, title]];
    }
    const newest = run.windows.at(-1);
    const shown = window === undefined ? newest : Number(window);
    return run.windows.filter((number) => run.id !== base || number !== shown).map((number) => [`${run.id}~${number}`, `${title} · window ${number}`]);
  });
}
