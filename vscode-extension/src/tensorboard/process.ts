/** The TensorBoard process: started on the traces of a run, its address known once it answers, ended with its owner. */

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";
import { object, readOr, text } from "../shape";
import { parentOf } from "../paths";

const started = object({ url: text });
const START_TIMEOUT_MS = 120_000;
const END_MS = 5_000;

interface TensorBoardOptions {
  readonly python: string;
  /** The extension's `board.py`. */
  readonly script: string;
  /** What it shows, as `board.py` takes it. */
  readonly shown: readonly string[];
  readonly extraArguments: readonly string[];
  readonly cwd: string;
  readonly say: (line: string) => void;
  /** Called once, when the process has ended by itself. */
  readonly died: () => void;
}

export class TensorBoard {
  readonly url: Promise<string>;
  private readonly child: ChildProcessWithoutNullStreams;
  private isEnding = false;

  constructor(options: TensorBoardOptions) {
    this.child = spawn(options.python, [options.script, ...options.extraArguments, ...options.shown], {
      cwd: options.cwd,
      windowsHide: true,
    });
    createInterface(this.child.stderr).on("line", (line) => options.say(line));
    this.child.stdin.on("error", () => undefined); // a child that is gone needs no end of input
    this.url = new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("TensorBoard did not start in two minutes")), START_TIMEOUT_MS);
      createInterface(this.child.stdout).on("line", (line) => {
        const answer = readOr(started, parsed(line));
        if (answer === undefined) {
          options.say(line);
        } else {
          clearTimeout(timer);
          resolve(answer.url);
        }
      });
      this.child.on("error", (error) => {
        clearTimeout(timer);
        reject(error);
      });
      this.child.on("exit", (code) => {
        clearTimeout(timer);
        reject(new Error(`TensorBoard ended with exit code ${code ?? "none"}; its output is in the logs`));
        if (!this.isEnding) {
          options.died();
        }
      });
    });
    this.url.catch(() => undefined); // whoever awaits it hears of it
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** Ends it by closing its input; where that does not help, by a signal. */
  end(): void {
    this.isEnding = true;
    this.child.stdin.end();
    const timer = setTimeout(() => this.child.kill(), END_MS);
    timer.unref();
    this.child.once("exit", () => clearTimeout(timer));
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return undefined;
  }
}

export interface Shown {
  /** Arguments for `board.py`; equal arguments show the same. */
  readonly words: readonly string[];
  readonly title: string;
}

/** These traces alone: other runs' traces in the same folder are not workers of this one. */
export function only(paths: readonly string[]): Shown {
  const [first = ""] = paths;
  return { words: paths.flatMap((path) => ["--trace", path]), title: paths.length === 1 ? first : `${parentOf(first)} (${paths.length} traces of one run)` };
}

export function isSame(one: Shown, other: Shown | undefined): boolean {
  return one.words.join("\0") === other?.words.join("\0");
}
