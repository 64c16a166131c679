/** Answers from the server that the pages came from. */

import type { Ask } from "../contract";
import { finite, object, read, readOr, text } from "../../shape";
import { FailedError, GoneError, NotYetError, RestartedError, queryOf, type Source } from "./source";

const progress = object({ progress: object({ done: finite, total: finite }) });
const failure = object({ error: text });

/** `base` is the folder of the questions: `./api/`. */
export class HttpSource implements Source {
  readonly isServed = true;
  readonly isWatched = true;
  readonly opensCode = false;

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

  open(): void {
    // Browsers have no editor; the pages show the text.
  }
}

/** What a status and a body say; the same for every door. */
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
