/** Answers from the plug-in of TensorBoard that the pages came from. */

import type { Ask } from "../contract";
import { HttpSource } from "./http";
import type { CodePlace, Source } from "./source";

export class TensorBoardSource implements Source {
  readonly isServed = true;
  readonly isWatched = true;
  /** Where TensorBoard stands in an editor, a script of the editor's says so (`webviews/tensorboard.ts`). */
  readonly opensCode = document.documentElement.dataset["editor"] !== undefined;
  private readonly server = new HttpSource("./api/", "");

  ask<Asked extends object, Answer>(question: Ask<Asked, Answer>, asked: Asked): Promise<Answer> {
    return this.server.ask(question, asked);
  }

  /** Tells the page around TensorBoard, in the words that torch-tb-profiler has for it: lines count from 0. */
  open({ file, line }: CodePlace): void {
    if (this.opensCode) {
      window.parent.parent.postMessage({ filename: file, line: line - 1 }, "*");
    }
  }
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
