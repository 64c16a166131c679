/** An answer that is wanted only sometimes; while another one comes, the last one stays. */

import { useEffect, useState } from "preact/hooks";
import type { Ask } from "../contract";
import { queryOf } from "../source/source";
import { asking, useSource, type Answered } from "../source/useAnswer";

/** The answer; undefined where nothing is asked. */
export function useAsked<Asked extends object, T>(question: Ask<Asked, T>, asked: Asked | undefined): Answered<T> | undefined {
  const source = useSource();
  const key = asked === undefined ? "" : `${queryOf(asked)}&`;
  const [state, setState] = useState<{ readonly key: string; readonly answered: Answered<T> } | undefined>();
  useEffect(() => {
    if (asked === undefined) {
      setState(undefined);
      return undefined;
    }
    let isWanted = true;
    const set = (answered: Answered<T>): void => {
      if (isWanted) {
        setState({ key, answered });
      }
    };
    asking(source, question, asked).then(
      (answer) => set({ state: "ready", answer }),
      (error: unknown) => set({ state: "failed", message: error instanceof Error ? error.message : String(error) }),
    );
    return () => {
      isWanted = false;
    };
    // `key` stands for `asked`.
  }, [source, question, key]);
  return asked === undefined ? undefined : state?.answered;
}
