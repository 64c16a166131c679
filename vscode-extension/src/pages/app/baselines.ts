/** Runs, and windows of them, by the words that addresses have for them. */

import type { Run } from "../contract";

export function titleOf(run: Run): string {
  const when = new Date(run.recordedAt);
  const time = Number.isNaN(when.getTime()) ? "" : ` · ${when.toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}`;
  return `${run.title}${time}`;
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
