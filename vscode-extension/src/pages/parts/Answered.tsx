/** An answer on its way: a bar while a trace is read, words where it failed, the page when it is there. */

import type { ComponentChildren, JSX } from "preact";
import type { Answered } from "../source/useAnswer";
import { bytes } from "../words";

interface Props<T> {
  readonly of: Answered<T>;
  readonly children: (answer: T) => ComponentChildren;
}

export function Answer<T>({ of, children }: Props<T>): JSX.Element {
  switch (of.state) {
    case "waiting":
      return <Waiting done={of.done} total={of.total} />;
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

function Waiting({ done, total }: { readonly done: number; readonly total: number }): JSX.Element {
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
