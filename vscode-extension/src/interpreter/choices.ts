/** Where DeepScope can be installed to, and what is run for it. */

import * as path from "node:path";
import { pythonOf } from "./candidates";
import { MINIMUM_DEEPSCOPE, type Facts } from "./probe";

const REQUIREMENT = `deepscope[lsp,dashboard]>=${MINIMUM_DEEPSCOPE}`;
const PIP = ["-m", "pip", "install", "--upgrade", REQUIREMENT];

interface InstallChoice {
  readonly label: string;
  readonly description: string;
  /** What is run, as it is shown beforehand. */
  readonly detail: string;
  /** Commands, one after the other. */
  readonly steps: readonly (readonly [string, ...string[]])[];
  /** The interpreter that has it afterwards. */
  readonly python: string;
}

interface Places {
  /** The workspace folders' paths. */
  readonly folders: readonly string[];
  /** Where the extension keeps an environment of its own. */
  readonly ownEnvironment: string;
  readonly isWindows: boolean;
  readonly exists: (file: string) => boolean;
}

/** The interpreter at hand. */
interface AtHand {
  readonly python: string;
  readonly facts: Facts;
  /** Others that have PyTorch, where this one has none. */
  readonly withTorch?: readonly string[];
}

/**
 * The best first: those with PyTorch where the one at hand has none; the environment at hand, unless pip refuses to install there (PEP 668); then the first workspace folder's
 * `.venv`, made if it is not there; an environment of the extension's own.
 */
export function installChoices({ python, facts, withTorch = [] }: AtHand, places: Places): InstallChoice[] {
  const [folder] = places.folders;
  return [
    ...withTorch.map((one) => ({ ...intoThis(one), label: "Into an environment with PyTorch" })),
    ...(facts.isExternallyManaged ? (folder === undefined ? [] : [intoVenv(python, path.join(folder, ".venv"), places)]) : [intoThis(python)]),
    {
      ...intoNew(python, places.ownEnvironment, places),
      label: "Into an environment of the extension's own",
      description: "your environment stays as it is; recording a run still needs DeepScope beside PyTorch",
    },
  ];
}

function intoThis(python: string): InstallChoice {
  return {
    label: "Into this environment",
    description: python,
    detail: [python, ...PIP].join(" "),
    steps: [[python, ...PIP]],
    python,
  };
}

function intoVenv(python: string, environment: string, places: Places): InstallChoice {
  const inside = pythonOf(environment, places.isWindows);
  const why = `${python} belongs to the system: pip installs nothing there`;
  return places.exists(inside)
    ? { ...intoThis(inside), label: "Into the workspace's .venv", description: why }
    : { ...intoNew(python, environment, places), label: "Into a new .venv of the workspace", description: `${why}; to record runs it needs PyTorch, too` };
}

function intoNew(python: string, environment: string, places: Places): Omit<InstallChoice, "label" | "description"> {
  const inside = pythonOf(environment, places.isWindows);
  return {
    detail: `${python} -m venv ${environment}, then pip install ${REQUIREMENT}`,
    steps: [
      [python, "-m", "venv", environment],
      [inside, ...PIP],
    ],
    python: inside,
  };
}
