/** Keeps the view in the address, a little after it came to rest. */

import { useEffect, useMemo, useRef } from "preact/hooks";
import type { View } from "./view";
import { change, wordsOf } from "./words";

const REST_MS = 200;

export interface Settled {
  /** The view came to rest: its words go into the address a little later. */
  told(view: View): void;
  /** Now. */
  keep(view: View): void;
  /** These words will be this page's own. */
  own(view: View): void;
  /** Whether an address's words are those that this page wrote itself. */
  isOwn(words: Readonly<Record<string, string>>): boolean;
}

/** `first` is the view that an address without words stands for. */
export function useSettled(first: View): Settled {
  const timer = useRef(0);
  const written = useRef<string | undefined>(undefined);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const keyOf = ({ from = "", to = "" }: Readonly<Record<string, string>>): string => `${from}-${to}`;
  return useMemo(() => {
    const own = (view: View): void => void (written.current = keyOf(wordsOf(view, first)));
    const keep = (view: View): void => {
      window.clearTimeout(timer.current);
      own(view);
      change(wordsOf(view, first));
    };
    return {
      told: (view) => {
        window.clearTimeout(timer.current);
        timer.current = window.setTimeout(() => keep(view), REST_MS);
      },
      keep,
      own,
      isOwn: (words) => words["at"] === undefined && written.current === keyOf(words),
    };
  }, [first]);
}
