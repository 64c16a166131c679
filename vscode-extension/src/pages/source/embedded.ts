/** Answers that stand in the page's own file. */

import type { Ask } from "../contract";
import { dictionary, read, type Reader } from "../../shape";
import { FailedError, queryOf, type Source } from "./source";

const anything: Reader<unknown> = (value) => value;

export class EmbeddedSource implements Source {
  readonly isServed = false;
  readonly opensCode = false;
  private readonly answers: Readonly<Record<string, unknown>>;

  /** `data` has each answer under its question's name and words: `overview?`, `file?file=…`. */
  constructor(data: unknown) {
    this.answers = read(dictionary(anything), data, "the page's data");
  }

  ask<Asked extends object, Answer>(question: Ask<Asked, Answer>, asked: Asked): Promise<Answer> {
    const found = this.answers[`${question.name}?${queryOf(asked)}`];
    return found === undefined
      ? Promise.reject(new FailedError("This is not in the file; deepscope view shows it."))
      : Promise.resolve(read(question.answer, found, question.name));
  }

  open(): void {
    // A file has no editor.
  }
}
