/** A search by text or by line: what it found, and the way from one to the next. */

import { useMemo, useState } from "preact/hooks";
import type { Address } from "../app/address";
import { questions, type Choice, type Found, type Matches, type Timeline } from "../contract";
import { useAsked } from "../source/answers";
import type { Sought } from "./scene";
import { placesAt } from "./address";

/** Told at once; there may be more. */
const LIMIT = 1000;

export interface Finder {
  /** What is sought, in words; "" for nothing. */
  readonly title: string;
  readonly sought: Sought | undefined;
  readonly matches: Matches | undefined;
  readonly problem: string;
  /** The number of the chosen one among all, from 1 on; 0 where none of them is chosen, or its number is not known. */
  readonly number: number;
  /** The one behind or before the chosen one, else behind or before a time; undefined where there is none. */
  step(forward: boolean, ns: number): Found | undefined;
}

export function useFinder(of: Timeline, choice: Choice, words: Address["words"], chosen: number | undefined): Finder {
  const { find = "", file = "", line = "" } = words;
  const isLine = file !== "" && /^\d+$/.test(line);
  const key = `${find}\0${file}\0${line}`;
  // Beyond the limit the search goes on from a time; it belongs to one search.
  const [from, setFrom] = useState<{ readonly key: string; readonly starts: readonly number[] }>({ key, starts: [] });
  const starts = from.key === key ? from.starts : [];
  const fromNs = starts.at(-1) ?? 0;
  const byText = useAsked(questions.timeline_search, find === "" ? undefined : { ...choice, text: find, fromNs, limit: LIMIT });
  const byLine = useAsked(questions.timeline_line, isLine && find === "" ? { ...choice, file, line: Number(line), fromNs, limit: LIMIT } : undefined);
  const answered = byText ?? byLine;
  const matches = answered?.state === "ready" ? answered.answer : undefined;
  const sought = useMemo((): Sought | undefined => {
    if (find !== "") {
      return { text: find, names: new Set(matches?.found.map(({ name }) => name)), places: undefined };
    }
    return isLine ? { text: "", names: new Set(), places: placesAt(of, file, Number(line)) } : undefined;
  }, [key, of, matches]);
  const index = matches?.found.findIndex(({ slice }) => slice === chosen) ?? -1;
  return {
    title: find !== "" ? `“${find}”` : isLine ? `${file.split(/[/\\]/).at(-1) ?? file}:${line}` : "",
    sought,
    matches,
    problem: answered?.state === "failed" ? answered.message : "",
    number: index >= 0 && starts.length === 0 ? index + 1 : 0,
    step: (forward, ns) => {
      const found = matches?.found ?? [];
      if (index >= 0) {
        const next = found[index + (forward ? 1 : -1)];
        const last = found.at(-1);
        if (next === undefined && forward && found.length === LIMIT && last !== undefined) {
          setFrom({ key, starts: [...starts, last.startNs] });
        } else if (next === undefined && !forward && starts.length > 0) {
          setFrom({ key, starts: starts.slice(0, -1) });
        }
        return next ?? (found.length < LIMIT && starts.length === 0 ? (forward ? found[0] : last) : undefined);
      }
      return forward ? (found.find(({ startNs }) => startNs >= ns) ?? found[0]) : (found.findLast(({ endNs }) => endNs <= ns) ?? found.at(-1));
    },
  };
}
