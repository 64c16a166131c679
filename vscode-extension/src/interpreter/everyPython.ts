/** All Pythons that a user may choose from, in the order in which they are offered. */

import * as path from "node:path";
import { isBelowAny } from "../folders";
import { candidates, pythonOf, type Candidate, type Surroundings } from "./candidates";

/** More than so many are not asked what they have. */
export const MOST_PYTHONS = 40;

export interface Machine extends Surroundings {
  /** Environments that the Python extension knows. */
  readonly knownEnvironments: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The names in a folder; none where it cannot be read. */
  readonly list: (folder: string) => readonly string[];
  /** The file that a path leads to; the path itself where it leads nowhere. */
  readonly realPath: (file: string) => string;
}

/**
 * The Pythons of this machine, each once:
 *
 * 1. those that are tried without a choice (`candidates`), what the setting names first,
 * 2. what else the Python extension knows,
 * 3. conda: the active environment, then each installation's own and its environments,
 * 4. pyenv's versions, and the environments of virtualenvwrapper,
 * 5. all `python3` and `python` on `PATH`.
 *
 * In a restricted workspace nothing is offered that lies in it, or that the workspace may have chosen.
 */
export function everyPython(machine: Machine): Candidate[] {
  const { isTrusted, isWindows, home, environment } = machine;
  const found: Candidate[] = [...candidates(machine), ...candidates({ ...machine, setting: "" })];
  if (isTrusted) {
    found.push(...machine.knownEnvironments.map((python): Candidate => ({ python, origin: "pythonExtension" })));
  }
  const inFolder = (folder: string): string[] => machine.list(folder).map((name) => path.join(folder, name));
  const condaPython = (folder: string): string => (isWindows ? path.join(folder, "python.exe") : pythonOf(folder, false));
  const condas = ["miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda"].map((name) => path.join(home, name));
  for (const conda of [environment["CONDA_PREFIX"] ?? "", ...condas, "/opt/conda", "/opt/miniconda3"].filter((one) => path.isAbsolute(one))) {
    const folders = [conda, ...inFolder(path.join(conda, "envs"))];
    found.push(...folders.map((folder): Candidate => ({ python: condaPython(folder), origin: "conda" })));
  }
  const versions = inFolder(path.join(environment["PYENV_ROOT"] ?? path.join(home, ".pyenv"), "versions"));
  found.push(...versions.map((folder): Candidate => ({ python: condaPython(folder), origin: "pyenv" })));
  const wrapped = inFolder(environment["WORKON_HOME"] ?? path.join(home, ".virtualenvs"));
  found.push(...wrapped.map((folder): Candidate => ({ python: pythonOf(folder, isWindows), origin: "virtualenv" })));
  for (const name of isWindows ? ["python.exe"] : ["python3", "python"]) {
    const folders = machine.searchPath.filter((folder) => path.isAbsolute(folder));
    found.push(...folders.map((folder): Candidate => ({ python: path.join(folder, name), origin: "path" })));
  }
  const own = found.filter(({ python, origin }) => origin === "setting" || machine.exists(python));
  const allowed = isTrusted ? own : own.filter(({ python }) => !isBelowAny(path.dirname(python), machine.folders));
  return onceEach(allowed, machine).slice(0, MOST_PYTHONS);
}

/** A virtual environment's interpreter is a link to another environment's: it is known by its folder. */
function onceEach(found: readonly Candidate[], { exists, realPath }: Machine): Candidate[] {
  const seen = new Set<string>();
  return found.filter(({ python }) => {
    const folder = path.dirname(python);
    const isEnvironment = exists(path.join(folder, "..", "pyvenv.cfg"));
    const key = isEnvironment ? realPath(folder) : realPath(python);
    return !seen.has(key) && seen.add(key);
  });
}
