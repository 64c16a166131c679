/** An answer that is wanted only sometimes; while another one comes, the last one stays. */

import { useEffect, useState } from "preact/hooks";
import type { Ask } from "../contract";
import { queryOf } from "../source/source";
import { asking, followed, useSource, type Answered } from "../source/useAnswer";

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
    return followed(
      () => asking(source, question, asked),
      (answered) => setState({ key, answered }),
    );
    // `key` stands for `asked`.
  }, [source, question, key]);
  return asked === undefined ? undefined : state?.answered;
}
