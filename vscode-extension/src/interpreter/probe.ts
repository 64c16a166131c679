/** What is known of an interpreter, asked by running it on the extension's own `probe.py`. */

import { execFile } from "node:child_process";
import { flag, nullable, object, read, text } from "../shape";
import { isAtLeast } from "./version";

/** The oldest library that speaks the contract of `server/contract.ts`. */
export const MINIMUM_DEEPSCOPE = "0.1.0";
export const MINIMUM_PYTHON = "3.10";
const TIMEOUT_MS = 30_000;

const answer = object({
  executable: text,
  python: text,
  deepscope: nullable(text),
  hasServer: flag,
  hasTensorBoard: flag,
  hasTorch: flag,
  /** pip refuses to install there (PEP 668). */
  isExternallyManaged: flag,
});
export type Facts = ReturnType<typeof answer>;

/** An interpreter that could not be asked; the message says why. */
export interface Failure {
  readonly failure: string;
}

/** Runs `python probe.py` in a folder of the extension's own, so that nothing of the workspace is imported. */
export function probe(python: string, script: string, cwd: string, timeout = TIMEOUT_MS): Promise<Facts | Failure> {
  return new Promise((resolve) => {
    execFile(python, [script], { cwd, timeout, windowsHide: true }, (error, stdout, stderr) => {
      if (error !== null) {
        resolve({ failure: lastLine(stderr) || error.message });
        return;
      }
      try {
        resolve(read(answer, JSON.parse(stdout) as unknown, python));
      } catch (problem) {
        resolve({ failure: problem instanceof Error ? problem.message : String(problem) });
      }
    });
  });
}

export type Verdict = "ready" | "tooOldPython" | "noDeepScope" | "tooOldDeepScope" | "noServer";

/** Whether the language server can be started there, and if not, what is missing. */
export function judge(facts: Facts): Verdict {
  if (!isAtLeast(facts.python, MINIMUM_PYTHON)) {
    return "tooOldPython";
  }
  if (facts.deepscope === null) {
    return "noDeepScope";
  }
  if (!isAtLeast(facts.deepscope, MINIMUM_DEEPSCOPE)) {
    return "tooOldDeepScope";
  }
  return facts.hasServer ? "ready" : "noServer";
}

function lastLine(output: string): string {
  return output.trim().split("\n").at(-1)?.trim() ?? "";
}
