/** The runs that can be chosen, as they come and go, and the words that addresses and lists have for them. */

import { questions, type News, type Run } from "../contract";
import { withWords, type Address } from "./address";
import { useEffect, useState } from "preact/hooks";
import { GoneError, RestartedError, type Source } from "../source/source";
import { asking, useSource } from "../source/answers";

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

const LOOK_MS = 5000;

interface Runs {
  readonly runs: readonly Run[];
  /** A run that was not there when the page was opened, and is newer than all of those; undefined where none is. */
  readonly newer: Run | undefined;
  /** What is wrong with the server; "" where it answers. */
  readonly problem: string;
}

/** What a look at the server found: other runs, another server, or that none is there. */
type Look = { readonly state: "same" | "changed" | "restarted"; readonly news: News } | { readonly state: "failed"; readonly problem: string };

/** Asks whether anything is new since the last look. */
export async function look(source: Source, last: News | undefined): Promise<Look> {
  try {
    const news = await source.ask(questions.news, {});
    if (last !== undefined && news.server !== last.server) {
      return { state: "restarted", news };
    }
    return { state: last === undefined || news.runs === last.runs ? "same" : "changed", news };
  } catch (error) {
    const isTold = error instanceof GoneError || error instanceof RestartedError;
    return { state: "failed", problem: isTold ? error.message : "" };
  }
}

/** The newest run that can be shown, if it is none of the first ones: what a killed training leaves behind leads nowhere. */
export function newerThan(first: ReadonlySet<string>, runs: readonly Run[]): Run | undefined {
  const newest = runs.find(({ problem }) => problem === "");
  return newest === undefined || first.size === 0 || first.has(newest.id) ? undefined : newest;
}

export function useRuns(): Runs {
  const source = useSource();
  const [shown, setShown] = useState<Runs>({ runs: [], newer: undefined, problem: "" });
  useEffect(() => {
    let isWanted = true;
    let last: News | undefined;
    let first: ReadonlySet<string> = new Set();
    const set = (change: Partial<Runs>): void => {
      if (isWanted) {
        setShown((before) => ({ ...before, ...change }));
      }
    };
    const read = (answer: Promise<{ readonly runs: readonly Run[] }>): void => {
      answer.then(
        ({ runs }) => {
          first = first.size === 0 ? new Set(runs.map(({ id }) => id)) : first;
          set({ runs, newer: newerThan(first, runs) });
        },
        () => undefined, // what fails is told in the page's place
      );
    };
    const watch = async (): Promise<void> => {
      if (document.visibilityState !== "visible") {
        return;
      }
      const found = await look(source, last);
      if (found.state === "failed") {
        set({ problem: found.problem });
        return;
      }
      last = found.news;
      set({ problem: "" });
      if (found.state === "restarted") {
        window.location.reload();
      } else if (found.state === "changed") {
        read(source.ask(questions.runs, {}));
      }
    };
    read(asking(source, questions.runs, {}));
    if (source.isWatched !== true) {
      return () => {
        isWanted = false;
      };
    }
    const seen = (): void => void watch();
    const timer = window.setInterval(seen, LOOK_MS);
    document.addEventListener("visibilitychange", seen);
    seen();
    return () => {
      isWanted = false;
      window.clearInterval(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [source]);
  return shown;
}
