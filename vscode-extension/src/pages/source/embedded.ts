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

  has(name: string, asked: object): boolean {
    return Object.hasOwn(this.answers, keyOf(name, asked));
  }

  async ask<Asked extends object, Answer>(question: Ask<Asked, Answer>, asked: Asked): Promise<Answer> {
    if (!this.has(question.name, asked)) {
      throw new FailedError("This is not in the file; deepscope view shows it.");
    }
    return Promise.resolve(read(question.answer, this.answers[keyOf(question.name, asked)], question.name));
  }

  open(): void {
    // A file has no editor.
  }
}

/** As `embedding.py` names answers. */
export function keyOf(name: string, asked: object): string {
  return `${name}?${queryOf(asked)}`;
}
