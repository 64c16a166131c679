/** What the list of Pythons says of each. Paths and names are not ours: no icon is made of them. */

import { plain } from "../status/words";
import type { Candidate, Origin } from "./candidates";
import { judge, type Facts, type Failure } from "./probe";

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

export interface PythonWords {
  readonly label: string;
  readonly description: string;
  readonly detail: string;
}

/** `Python 3.11.4` · `torch ✓  DeepScope ✗ · workspace`; without facts it is being asked. */
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
