/** Answers for components: asked once, asked again while a trace is being read, kept while the page is open. */

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { questions, type Ask, type Choice } from "../contract";
import { NotYetError, queryOf, type Source } from "./source";

export type Answered<T> =
  | { readonly state: "waiting"; readonly done: number; readonly total: number }
  | { readonly state: "failed"; readonly message: string }
  | { readonly state: "ready"; readonly answer: T };

const AGAIN_MS = 150;
const KEPT = 60;

export const SourceContext = createContext<Source | undefined>(undefined);

/** Where this page's answers come from. */
export function useSource(): Source {
  const source = useContext(SourceContext);
  if (source === undefined) {
    throw new Error("there is no source around this component");
  }
  return source;
}

/** Tells of a question whether it is answered here: a file has no more than was put into it. */
export function useHas(): <Asked extends object, T>(question: Ask<Asked, T>, asked: Asked) => boolean {
  const source = useSource();
  return (question, asked) => source.has?.(question.name, asked) ?? true;
}

/** Tells of a choice whether it can be shown. */
export function useOffers(): (choice: Choice) => boolean {
  const has = useHas();
  return (choice) => has(questions.header, choice);
}

const kept = new WeakMap<Source, Map<string, Promise<unknown>>>();

/** Asks until the answer is there; the same question is asked once. */
export function asking<Asked extends object, T>(
  source: Source,
  question: Ask<Asked, T>,
  asked: Asked,
  told: (done: number, total: number) => void = () => undefined,
): Promise<T> {
  const known = kept.get(source) ?? new Map<string, Promise<unknown>>();
  kept.set(source, known);
  const key = `${question.name}?${queryOf(asked)}`;
  const before = known.get(key);
  known.delete(key);
  const answer = (before as Promise<T> | undefined) ?? patiently(source, question, asked, told);
  known.set(key, answer);
  answer.catch(() => known.delete(key));
  const [oldest] = known.keys();
  if (known.size > KEPT && oldest !== undefined) {
    known.delete(oldest);
  }
  return answer;
}

/** Asks until the answer is there, and keeps nothing. */
export async function patiently<Asked extends object, T>(
  source: Source,
  question: Ask<Asked, T>,
  asked: Asked,
  told: (done: number, total: number) => void = () => undefined,
): Promise<T> {
  for (;;) {
    try {
      return await source.ask(question, asked);
    } catch (error) {
      if (!(error instanceof NotYetError)) {
        throw error;
      }
      told(error.done, error.total);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

/** The answer to a question, as far as it is there. While another one comes, the last one stays if `keepsLast`. */
export function useAnswer<Asked extends object, T>(question: Ask<Asked, T>, asked: Asked, keepsLast = false): Answered<T> {
  const source = useSource();
  const key = queryOf(asked);
  const [state, setState] = useState<Answered<T>>({ state: "waiting", done: 0, total: 0 });
  useEffect(() => {
    if (!keepsLast) {
      setState({ state: "waiting", done: 0, total: 0 });
    }
    return followed((wait) => asking(source, question, asked, wait), setState);
    // `key` stands for `asked`.
  }, [source, question, key]);
  return state;
}

/** Tells of an answer as it comes, until what is returned is called. */
export function followed<T>(ask: (waits: (done: number, total: number) => void) => Promise<T>, told: (answered: Answered<T>) => void): () => void {
  let isWanted = true;
  const tell = (answered: Answered<T>): void => {
    if (isWanted) {
      told(answered);
    }
  };
  ask((done, total) => tell({ state: "waiting", done, total })).then(
    (answer) => tell({ state: "ready", answer }),
    (error: unknown) => tell({ state: "failed", message: error instanceof Error ? error.message : String(error) }),
  );
  return () => {
    isWanted = false;
  };
}
