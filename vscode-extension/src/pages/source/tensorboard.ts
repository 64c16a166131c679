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

/** Keeps the address for this tab of the browser: TensorBoard draws its frames anew, without their addresses. */
export function keepAddress(): void {
  window.addEventListener("hashchange", () => {
    try {
      window.sessionStorage.setItem("deepscope.address", window.location.hash);
    } catch {
      // Where the browser keeps nothing, the first page is shown again.
    }
  });
}
