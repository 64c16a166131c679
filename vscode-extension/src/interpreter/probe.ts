/** What is known of an interpreter, asked by running it on the extension's own `probe.py`, and how that is told. */

import { execFile } from "node:child_process";
import { flag, nullable, object, read, text } from "../shape";
import { plain } from "../status/words";
import type { Candidate, Origin } from "./candidates";

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

/** Whether `version` (`1.2.3`, `1.2.0rc1`, `0.4.dev3+g12`) is at least `wanted`, by its numbers. */
export function isAtLeast(version: string, wanted: string): boolean {
  const [have, want] = [release(version), release(wanted)];
  for (let part = 0; part < Math.max(have.length, want.length); part += 1) {
    const difference = (have[part] ?? 0) - (want[part] ?? 0);
    if (difference !== 0) {
      return difference > 0;
    }
  }
  return true;
}

function release(version: string): number[] {
  const match = /^\s*v?(?:\d+!)?(\d+(?:\.\d+)*)/.exec(version);
  return (match?.[1] ?? "0").split(".").map(Number);
}

const ORIGINS: Readonly<Record<Origin, string>> = {
  setting: "the setting",
  pythonExtension: "Python extension",
  workspaceVenv: "workspace",
  conda: "conda",
  pyenv: "pyenv",
  virtualenv: "virtualenv",
  path: "PATH",
  own: "the extension's own",
};

interface PythonWords {
  readonly label: string;
  readonly description: string;
  readonly detail: string;
}

/** `Python 3.11.4` · `torch ✓  DeepScope ✗ · workspace`; without facts it is being asked. Paths and names are not ours: no icon is made of them. */
export function pythonWords({ python, origin }: Candidate, facts: Facts | Failure | undefined, isCurrent: boolean): PythonWords {
  const mark = (has: boolean): string => (has ? "✓" : "✗");
  const detail = plain(python);
  if (facts === undefined || "failure" in facts) {
    return { label: "Python", description: facts === undefined ? "…" : `does not run: ${plain(facts.failure).slice(0, 120)}`, detail };
  }
  const verdict = judge(facts);
  const old = verdict === "tooOldPython" ? " (too old)" : "";
  const lacks = verdict === "tooOldDeepScope" ? " (too old)" : verdict === "noServer" ? " (without its language server)" : "";
  const has = `torch ${mark(facts.hasTorch)}  DeepScope ${mark(facts.deepscope !== null)}${lacks}`;
  return { label: `Python ${plain(facts.python)}${old}`, description: [has, ORIGINS[origin], ...(isCurrent ? ["current"] : [])].join(" · "), detail };
}
