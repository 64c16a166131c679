/** Answers from the server that the pages came from: our own, or TensorBoard's with our plug-in. */

import type { Ask } from "../contract";
import { finite, object, read, readOr, text } from "../../shape";
import { FailedError, GoneError, NotYetError, queryOf, RestartedError, type CodePlace, type Source } from "./source";

const progress = object({ progress: object({ done: finite, total: finite }) });
const failure = object({ error: text });

/** `base` is the folder of the questions: `./api/`. */
export class HttpSource implements Source {
  readonly isServed = true;
  readonly isWatched = true;
  readonly opensCode: boolean = false;

  constructor(
    private readonly base: string,
    private readonly token: string,
  ) {}

  async ask<Asked extends object, Answer>(question: Ask<Asked, Answer>, asked: Asked): Promise<Answer> {
    let reply: Response;
    try {
      reply = await fetch(`${this.base}${question.name}?${queryOf(asked)}`, {
        headers: this.token === "" ? {} : { "X-DeepScope-Token": this.token },
        credentials: "same-origin",
      });
    } catch {
      throw new GoneError("The server does not answer: it was ended, or the connection is gone.");
    }
    return answered(question, reply.status, await reply.json().catch(() => undefined));
  }

  /** Browsers have no editor; the pages show the text. */
  open: (place: CodePlace) => void = () => undefined;
}

/** What a status and a body say; the same wherever the pages are. */
export function answered<Asked, Answer>(question: Ask<Asked, Answer>, status: number, body: unknown): Answer {
  if (status === 202) {
    const told = read(progress, body, "the progress").progress;
    throw new NotYetError(told.done, told.total);
  }
  if (status === 401) {
    throw new RestartedError("The server was started anew: open the address that it printed.");
  }
  if (status !== 200) {
    throw new FailedError(readOr(failure, body)?.error ?? `The server answered ${status}.`);
  }
  return read(question.answer, body, `the answer to ${question.name}`);
}

export class TensorBoardSource extends HttpSource {
  /** Where TensorBoard stands in an editor, a script of the editor's says so (`webviews/tensorboard.ts`). */
  override readonly opensCode = document.documentElement.dataset["editor"] !== undefined;

  constructor() {
    super("./api/", "");
  }

  /** Tells the page around TensorBoard, in the words that torch-tb-profiler has for it: lines count from 0. */
  override open = ({ file, line }: CodePlace): void => {
    if (this.opensCode) {
      window.parent.parent.postMessage({ filename: file, line: line - 1 }, "*");
    }
  };
}

/** Keeps the address in TensorBoard's own, and for this tab of the browser: TensorBoard draws its frames anew, without their addresses. */
export function keepAddress(): void {
  window.addEventListener("hashchange", () => {
    const { hash } = window.location;
    try {
      window.sessionStorage.setItem("deepscope.address", hash);
      const { history, location } = window.parent;
      history.replaceState(history.state, "", withAddress(location.hash, hash));
    } catch {
      // Where the browser keeps nothing, or TensorBoard stands elsewhere, the first page is shown again.
    }
  });
}

/** The word for what TensorBoard's address tells a plug-in. The plug-in's module reads it (`dashboard/tensorboard.py`). */
const WORD = "p.deepscope.at=";

/** TensorBoard's address with that of our page. */
export function withAddress(around: string, hash: string): string {
  const [tab = "", ...others] = around.split("&").filter((part) => !part.startsWith(WORD));
  return [tab === "" ? "#deepscope" : tab, ...others, `${WORD}${encodeURIComponent(hash)}`].join("&");
}
