/** Answers that stand in the page's own file. */

import type { Ask } from "../contract";
import { dictionary, read, type Reader } from "../../shape";
import { FailedError, queryOf, type Source } from "./source";

const anything: Reader<unknown> = (value) => value;

export class EmbeddedSource implements Source {
  readonly isServed = false;
  readonly opensCode = false;
  private readonly answers: Readonly<Record<string, unknown>>;
  private readonly damage: string = "";

  /** `text` is JSON; each answer, or the name of the one that it is, stands under its question's name and words: `overview?`, `file?file=…`. */
  constructor(text: string) {
    try {
      this.answers = read(dictionary(anything), JSON.parse(text), "the page's data");
    } catch (error) {
      this.answers = {};
      this.damage = `This file is damaged: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  has(name: string, asked: object): boolean {
    return Object.hasOwn(this.answers, keyOf(name, asked));
  }

  async ask<Asked extends object, Answer>(question: Ask<Asked, Answer>, asked: Asked): Promise<Answer> {
    if (!this.has(question.name, asked)) {
      throw new FailedError(this.damage === "" ? "This is not in the file; deepscope view shows it." : this.damage);
    }
    const found = this.answers[keyOf(question.name, asked)];
    return Promise.resolve(read(question.answer, typeof found === "string" ? this.answers[found] : found, question.name));
  }

  open(): void {
    // A file has no editor.
  }
}

/** As `html_file.py` names answers. */
export function keyOf(name: string, asked: object): string {
  return `${name}?${queryOf(asked)}`;
}
