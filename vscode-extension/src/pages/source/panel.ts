/** Answers from the editor around a panel, which asks the server. */

import { fromPages, toPages, type FromPages, type ToPages } from "../../dashboard/messages";
import { readOr } from "../../shape";
import type { Ask } from "../contract";
import { answered } from "./http";
import { FailedError, queryOf, type CodePlace, type Source } from "./source";

type Reply = Extract<ToPages, { type: "answer" }>;

/** The way to the extension and back; what comes back is checked. */
export class Extension {
  private readonly waiting = new Map<number, (reply: Reply) => void>();
  private asked = 0;

  /** `post` sends a message; `told` hears those that are no answers. */
  constructor(
    private readonly post: (message: FromPages) => void,
    private readonly told: (message: Exclude<ToPages, Reply>) => void,
  ) {}

  /** Takes in what came from the extension; a message of another shape is none. */
  receive(given: unknown): void {
    const message = readOr(toPages, given);
    if (message === undefined) {
      return;
    }
    if (message.type !== "answer") {
      this.told(message);
      return;
    }
    this.waiting.get(message.id)?.(message);
    this.waiting.delete(message.id);
  }

  say(message: FromPages): void {
    this.post(message);
  }

  ask(name: string, query: string): Promise<Reply> {
    const id = (this.asked += 1);
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.post({ type: "ask", id, name, query });
    });
  }
}

/** One of these has the answers about the traces that the editor shows; when it shows others, there is a new one. */
export class PanelSource implements Source {
  readonly isServed = true;
  readonly opensCode = true;

  constructor(private readonly extension: Extension) {}

  async ask<Asked extends object, Answer>(question: Ask<Asked, Answer>, asked: Asked): Promise<Answer> {
    const { status, body } = await this.extension.ask(question.name, queryOf(asked));
    return answered(question, status, parsed(body));
  }

  open({ file, line }: CodePlace): void {
    const message = readOr(fromPages, { type: "open", file, line });
    if (message !== undefined) {
      this.extension.say(message);
    }
  }
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    throw new FailedError("The server's answer was cut off.");
  }
}
