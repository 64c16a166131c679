/** Dialogs: which keys do what, and how the trace comes into Perfetto. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { KEYS, keyWords } from "./keys";

interface Props {
  readonly close: () => void;
}

export function Help({ close }: Props): JSX.Element {
  return (
    <Dialog title="Keys" close={close}>
      <dl class="keys">
        {KEYS.map(({ keys, words }) => (
          <div key={words}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{keyWords(key)}</kbd>
              ))}
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
      <p class="muted">
        The wheel zooms where the pointer is; with shift, or sideways, it moves. Drag moves; shift and drag marks a stretch of time. A double
        click fits a slice.
      </p>
    </Dialog>
  );
}

/** Nothing is sent anywhere: the reader makes the file and opens it there. */
export function Perfetto({ close, trace }: Props & { readonly trace: string }): JSX.Element {
  return (
    <Dialog title="Open in Perfetto" close={close}>
      <p>Make a file for Perfetto, with a track for your lines, and open it there:</p>
      <pre>
        <code>deepscope export {quoted(trace)} --format perfetto -o timeline.json</code>
      </pre>
      <p>
        <a href="https://ui.perfetto.dev" target="_blank" rel="noopener noreferrer">
          ui.perfetto.dev
        </a>{" "}
        reads it in your browser: “Open trace file”, or drop it there. The trace itself opens there, too. These pages send nothing themselves.
      </p>
    </Dialog>
  );
}

function quoted(path: string): string {
  return /^[\w./:@%+=-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

function Dialog({ title, close, children }: Props & { readonly title: string; readonly children: ComponentChildren }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="over" aria-label={title} onClose={close} onClick={(event) => event.target === dialog.current && close()}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="plain" aria-label="Close" onClick={close}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}
