/** Where answers come from: a server, a file's own data, or the editor around a panel. */

import type { Ask } from "../contract";

/** A line of code, as recorded. */
export interface CodePlace {
  readonly file: string;
  readonly line: number;
}

/** The trace is still being read; in bytes. */
export class NotYetError extends Error {
  constructor(
    readonly done: number,
    readonly total: number,
  ) {
    super("the trace is still being read");
  }
}

/** There is no answer; the message is for the reader. */
export class FailedError extends Error {}

/** No server answers. */
export class GoneError extends FailedError {}

/** The server does not know these pages: it was started anew. */
export class RestartedError extends FailedError {}

export interface Source {
  /** Whether questions that are as large as the trace are answered: the timeline, any file's text. */
  readonly isServed: boolean;
  /** Whether the pages themselves have to look for new runs. */
  readonly isWatched?: boolean;
  /** Whether the code opens in an editor; else the pages show it themselves. */
  readonly opensCode: boolean;
  /**
   * Answers a question.
   *
   * @throws NotYetError, FailedError; or a ShapeError where the answer is none of this version's.
   */
  ask<Asked extends object, Answer>(question: Ask<Asked, Answer>, asked: Asked): Promise<Answer>;
  /** Whether a question has an answer here; always, where not given. */
  has?(name: string, asked: object): boolean;
  /** Opens a line in the editor, where `opensCode`. */
  open(place: CodePlace): void;
}

/** A question's words as an address has them; what is not set is left out. */
export function queryOf(asked: object): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(asked) as [string, string | number | boolean | null | undefined | readonly number[]][]) {
    if (value !== null && value !== undefined && value !== "") {
      words.set(name, typeof value === "object" ? value.join(",") : String(value));
    }
  }
  words.sort();
  return words.toString();
}
