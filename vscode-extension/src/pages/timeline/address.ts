/** The timeline's words in the address: `from` and `to`, `step`, `slice`, `mark`, `find`, or a line's `file` and `line`. */

import { choiceOf, go, parsed, withWords, type Address } from "../app/address";
import { questions, type Choice, type CodeLine, type Timeline } from "../contract";
import { useAsked } from "../source/answers";
import { around, clamped, type View } from "./view";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Stage } from "./stage";

/** Around a moment (`at`) so much is shown, of the whole. */
const MOMENT = 0.01;

/** Which trace is shown: steps, phases and modules of it are all in it. */
export function traceOf(address: Address): Choice {
  return choiceOf(address, ["run", "stage", "rank"]);
}

/** The stretch that an address wants to be seen; undefined for none. */
export function viewOf(words: Address["words"], whole: number): View | undefined {
  const [from, to, at] = [nanoseconds(words["from"]), nanoseconds(words["to"]), nanoseconds(words["at"])];
  if (from !== undefined && to !== undefined && to > from) {
    return clamped({ begin: from, end: to }, whole);
  }
  return at === undefined ? undefined : clamped({ begin: at - (MOMENT * whole) / 2, end: at + (MOMENT * whole) / 2 }, whole);
}

/** The marked stretch. */
export function stretchOf(words: Address["words"], whole: number): View | undefined {
  const [begin, end] = (words["mark"] ?? "").split("-").map(nanoseconds);
  return begin === undefined || end === undefined || end <= begin || begin > whole ? undefined : { begin, end: Math.min(end, whole) };
}

/** The chosen slice; undefined for none, or where there is no such slice. */
export function sliceOf(words: Address["words"], of: Timeline): number | undefined {
  const slice = nanoseconds(words["slice"]);
  return slice === undefined || slice >= of.slices ? undefined : slice;
}

/** Words for a view; none for the one that is shown first. */
export function wordsOf({ begin, end }: View, first: View): Readonly<Record<string, string>> {
  const [from, to] = [Math.round(begin), Math.round(end)];
  return from === Math.round(first.begin) && to === Math.round(first.end) ? { from: "", to: "", at: "" } : { from: String(from), to: String(to), at: "" };
}

function nanoseconds(word: string | undefined): number | undefined {
  return word !== undefined && /^\d{1,15}$/.test(word) ? Number(word) : undefined;
}

/** Changes words of this page's address; nothing where another page is shown by now. */
export function change(words: Readonly<Record<string, string>>, isNew = false): void {
  const address = parsed(window.location.hash);
  if (address.page === "timeline" || address.page === "") {
    const next = withWords({ ...address, page: "timeline" }, words);
    if (next !== window.location.hash) {
      go(next, isNew);
    }
  }
}

/** Numbers of the places at a line. */
export function placesAt(of: Timeline, file: string, line: number): ReadonlySet<number> {
  return new Set(of.places.flatMap((place: CodeLine, at) => (place.file === file && place.line === line ? [at] : [])));
}

const REST_MS = 200;

interface Settled {
  /** The view came to rest: its words go into the address a little later. */
  told(view: View): void;
  /** Now. */
  keep(view: View): void;
  /** These words will be this page's own. */
  own(view: View): void;
  /** Whether an address's words are those that this page wrote itself. */
  isOwn(words: Readonly<Record<string, string>>): boolean;
}

/** Keeps the view in the address, a little after it came to rest. `first` is the view that an address without words stands for. */
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

const MOST = 1000;

/** Shows a step where one is chosen: at the beginning, unless the address has a view of its own, and when another one is. */
export function useStep(stage: Stage | undefined, choice: Choice, words: Address["words"]): void {
  const step = /^\d{1,15}$/.test(words["step"] ?? "") ? (words["step"] ?? "") : "";
  const hasView = words["from"] !== undefined || words["at"] !== undefined || words["file"] !== undefined;
  const shown = useRef(hasView ? step : "");
  const name = `step ${step}`;
  const steps = useAsked(questions.timeline_search, step === "" ? undefined : { ...choice, text: name, kinds: "step", limit: MOST });
  const found = steps?.state === "ready" ? steps.answer.found.find((one) => one.name === name) : undefined;
  useEffect(() => {
    if (step === "") {
      shown.current = "";
    } else if (stage !== undefined && found !== undefined && shown.current !== step) {
      shown.current = step;
      stage.motion.go(around(found.startNs, found.endNs, stage.whole));
    }
  }, [stage, step, found]);
}
