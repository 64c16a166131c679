/** The process of `deepscope view`: told what to show, asked over the loopback, ended with its owner. */

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { get } from "node:http";
import { createInterface } from "node:readline";

const START_TIMEOUT_MS = 120_000;
const SHOWN_TIMEOUT_MS = 10_000;
const END_MS = 5_000;
const KEPT_LINES = 20;

/** The traces that there are, and one of the run that is shown where none is chosen. */
export interface Shown {
  readonly paths: readonly string[];
  readonly first: string;
  /** Names of the editor's proxy, under which a browser reaches the server. */
  readonly hosts: readonly string[];
}

export interface Reply {
  readonly status: number;
  /** JSON. */
  readonly body: string;
}

interface ViewOptions {
  readonly python: string;
  readonly shown: Shown;
  readonly extraArguments: readonly string[];
  /** Not the workspace: `-m` puts the working folder first on the import path. */
  readonly cwd: string;
  readonly say: (line: string) => void;
  /** Called once, when the process has ended by itself after it had answered. */
  readonly died: () => void;
}

/** The server is gone: whoever asked it may ask the next one. */
export class GoneError extends Error {}

export class ViewServer {
  /** With its token; rejected where the process ended before it answered, with the reason. */
  readonly address: Promise<URL>;
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly confirmed: (() => void)[] = [];
  private isEnding = false;

  constructor(private readonly options: ViewOptions) {
    const words = ["-m", "deepscope", "view", "--no-browser", ...options.extraArguments, "-"];
    this.child = spawn(options.python, words, { cwd: options.cwd, windowsHide: true });
    this.child.stdin.on("error", () => undefined); // a child that is gone needs no end of input
    const last: string[] = [];
    createInterface(this.child.stderr).on("line", (line) => {
      last.splice(0, Math.max(0, last.length - KEPT_LINES + 1));
      last.push(line);
      options.say(line);
    });
    this.address = new Promise((resolve, reject) => {
      let isServing = false;
      const timer = setTimeout(() => reject(new Error("deepscope view did not start in two minutes")), START_TIMEOUT_MS);
      createInterface(this.child.stdout).on("line", (line) => {
        const address = addressIn(line);
        if (address !== undefined) {
          isServing = true;
          clearTimeout(timer);
          resolve(address);
        } else if (line === "shown") {
          this.confirmed.shift()?.();
        }
      });
      this.child.on("error", (error) => {
        clearTimeout(timer);
        reject(error);
      });
      this.child.on("close", (code) => {
        clearTimeout(timer);
        reject(new Error(reasonOf(last, options.python, code)));
        if (isServing && !this.isEnding) {
          options.died();
        }
      });
    });
    this.address.catch(() => undefined); // whoever awaits it hears of it
    this.write(options.shown);
  }

  get python(): string {
    return this.options.python;
  }

  /** Shows other traces from now on; done when the server has heard it. */
  show(shown: Shown): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, SHOWN_TIMEOUT_MS);
      this.confirmed.push(() => {
        clearTimeout(timer);
        resolve();
      });
      this.write(shown);
    });
  }

  /** @throws GoneError where the server has ended; else as `address` is rejected. */
  async ask(name: string, query: string): Promise<Reply> {
    const address = await this.address;
    return new Promise((resolve, reject) => {
      const gone = (error: Error): void => reject(new GoneError(error.message));
      const headers = { "X-DeepScope-Token": address.searchParams.get("token") ?? "" };
      get({ host: address.hostname, port: address.port, path: `/api/${name}?${query}`, headers, agent: false }, (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.on("error", gone);
        response.on("end", () => resolve({ status: response.statusCode ?? 500, body: Buffer.concat(parts).toString("utf8") }));
      }).on("error", gone);
    });
  }

  /** Ends it by closing its input; where that does not help, by a signal. */
  end(): void {
    this.isEnding = true;
    this.child.stdin.end();
    const timer = setTimeout(() => this.child.kill("SIGKILL"), END_MS);
    timer.unref();
    this.child.once("exit", () => clearTimeout(timer));
  }

  private write(shown: Shown): void {
    this.child.stdin.write(`${JSON.stringify(shown)}\n`);
  }
}

/** The address that stands alone on a line. */
export function addressIn(line: string): URL | undefined {
  return /^http:\/\/127\.0\.0\.1:\d{1,5}\/\?token=[\w-]+$/.test(line) ? new URL(line) : undefined;
}

/** Why it did not start, from what it said last: in words that help. */
export function reasonOf(said: readonly string[], python: string, code: number | null): string {
  const all = said.join("\n");
  if (/No such (command|option)/i.test(all)) {
    return `DeepScope in ${python} is too old for the dashboard; run: ${python} -m pip install --upgrade deepscope`;
  }
  if (/No module named '?deepscope\b/.test(all)) {
    return `DeepScope is not installed in ${python}; run: ${python} -m pip install deepscope`;
  }
  const last = said.findLast((line) => line.trim() !== "")?.replace(/^Error: /, "");
  return last ?? `deepscope view ended with ${code === null ? "a signal" : `exit code ${code}`}`;
}
