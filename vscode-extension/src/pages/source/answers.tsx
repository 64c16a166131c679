/** Answers for components: asked once, asked again while a trace is being read, kept while the page is open. */

import { createContext, type ComponentChildren, type JSX } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { questions, type Ask, type Choice } from "../contract";
import { NotYetError, queryOf, type Source } from "./source";
import { bytes } from "../words";

type Answered<T> =
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

/** Called with how much of the trace has been read, in bytes. */
type OnProgress = (done: number, total: number) => void;

/** Asks until the answer is there; the same question is asked once. */
export function asking<Asked extends object, T>(source: Source, question: Ask<Asked, T>, asked: Asked, progressed?: OnProgress): Promise<T> {
  const known = kept.get(source) ?? new Map<string, Promise<unknown>>();
  kept.set(source, known);
  const key = `${question.name}?${queryOf(asked)}`;
  const before = known.get(key);
  known.delete(key);
  const answer = (before as Promise<T> | undefined) ?? patiently(source, question, asked, progressed);
  known.set(key, answer);
  answer.catch(() => known.delete(key));
  const [oldest] = known.keys();
  if (known.size > KEPT && oldest !== undefined) {
    known.delete(oldest);
  }
  return answer;
}

/** Asks until the answer is there, and keeps nothing. */
export async function patiently<Asked extends object, T>(source: Source, question: Ask<Asked, T>, asked: Asked, progressed?: OnProgress): Promise<T> {
  for (;;) {
    try {
      return await source.ask(question, asked);
    } catch (error) {
      if (!(error instanceof NotYetError)) {
        throw error;
      }
      progressed?.(error.done, error.total);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

/** The answer to a question, as far as it is there. While another one comes, the last one stays if `keepsLast`. */
export function useAnswer<Asked extends object, T>(question: Ask<Asked, T>, asked: Asked, keepsLast = false): Answered<T> {
  return useAsked(question, asked, keepsLast) ?? WAITING;
}

export const WAITING = { state: "waiting", done: 0, total: 0 } as const;

/** The same of what is wanted only sometimes; undefined where nothing is asked, and before the first answer. */
export function useAsked<Asked extends object, T>(question: Ask<Asked, T>, asked: Asked | undefined, keepsLast = true): Answered<T> | undefined {
  const source = useSource();
  const key = asked && queryOf(asked);
  const [answered, setAnswered] = useState<Answered<T> | undefined>();
  useEffect(() => {
    if (asked === undefined || !keepsLast) {
      setAnswered(undefined);
    }
    if (asked === undefined) {
      return undefined;
    }
    let isWanted = true;
    const tell = (next: Answered<T>): void => {
      if (isWanted) {
        setAnswered(next);
      }
    };
    asking(source, question, asked, (done, total) => tell({ state: "waiting", done, total })).then(
      (answer) => tell({ state: "ready", answer }),
      (error: unknown) => tell({ state: "failed", message: error instanceof Error ? error.message : String(error) }),
    );
    return () => {
      isWanted = false;
    };
    // `key` stands for `asked`.
  }, [source, question, key]);
  return asked === undefined ? undefined : answered;
}

interface AnswerProps<T> {
  readonly of: Answered<T>;
  readonly children: (answer: T) => ComponentChildren;
}

export function Answer<T>({ of, children }: AnswerProps<T>): JSX.Element {
  switch (of.state) {
    case "waiting":
      return <Progress done={of.done} total={of.total} />;
    case "failed":
      return (
        <div class="failure" role="alert">
          <h3>This cannot be shown</h3>
          <p>{of.message}</p>
        </div>
      );
    case "ready":
      return <>{children(of.answer)}</>;
  }
}

function Progress({ done, total }: { readonly done: number; readonly total: number }): JSX.Element {
  if (total === 0) {
    return <div class="waiting quiet" role="status" aria-label="Loading" />;
  }
  return (
    <div class="waiting" role="status">
      <p>{done < total ? `Reading the trace: ${bytes(done)} of ${bytes(total)}` : `The trace is read (${bytes(total)}); working out what to show …`}</p>
      {done < total ? <progress max={total} value={done} /> : <progress />}
      <p class="muted">It is read once; the next time it opens at once.</p>
    </div>
  );
}
