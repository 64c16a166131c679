/** Which interpreters are tried, in which order, and which may be chosen. */

import * as path from "node:path";
import { isBelowAny } from "../paths";

export type Origin = "setting" | "pythonExtension" | "workspaceVenv" | "conda" | "pyenv" | "virtualenv" | "path" | "own";

export interface Candidate {
  readonly python: string;
  readonly origin: Origin;
}

/** What decides the order; the caller finds it out. */
export interface Surroundings {
  readonly isTrusted: boolean;
  /** `deepscope.interpreter` as it holds here, and as the user (not the workspace) has set it. */
  readonly setting: string;
  readonly userSetting: string;
  /** The Python extension's active environment. */
  readonly activeEnvironment: string | undefined;
  /** The workspace folders' paths. */
  readonly folders: readonly string[];
  readonly home: string;
  /** The folders of `PATH`. */
  readonly searchPath: readonly string[];
  /** Where the extension keeps an environment of its own. */
  readonly ownEnvironment: string;
  readonly isWindows: boolean;
  readonly exists: (file: string) => boolean;
}

/**
 * The interpreters to try, best first:
 *
 * 1. The setting `deepscope.interpreter`. It stands alone: whoever names one wants no other.
 * 2. The Python extension's active environment.
 * 3. `.venv` or `venv` in a workspace folder, the first folder first.
 * 4. `python3` or `python` on `PATH`, unless that lies in a workspace folder.
 * 5. The extension's own environment, where the user once let it make one.
 *
 * In a restricted workspace only the *user's* setting counts, if it lies outside: 2 to 4 may all be the workspace's choice.
 */
export function candidates(around: Surroundings): Candidate[] {
  if (!around.isTrusted) {
    const own = expand(around.userSetting, around);
    const isOutside = own !== undefined && path.isAbsolute(own) && !isBelowAny(path.dirname(own), around.folders);
    return isOutside ? [{ python: own, origin: "setting" }] : [];
  }
  const chosen = expand(around.setting, around);
  if (chosen !== undefined) {
    return [{ python: chosen, origin: "setting" }];
  }
  const found: Candidate[] = [];
  if (around.activeEnvironment !== undefined) {
    found.push({ python: around.activeEnvironment, origin: "pythonExtension" });
  }
  for (const folder of around.folders) {
    for (const name of [".venv", "venv"]) {
      found.push({ python: pythonOf(path.join(folder, name), around.isWindows), origin: "workspaceVenv" });
    }
  }
  const outside = around.searchPath.filter((folder) => path.isAbsolute(folder) && !isBelowAny(folder, around.folders));
  for (const name of around.isWindows ? ["python.exe"] : ["python3", "python"]) {
    found.push(...outside.map((folder): Candidate => ({ python: path.join(folder, name), origin: "path" })));
  }
  found.push({ python: pythonOf(around.ownEnvironment, around.isWindows), origin: "own" });
  return firstOfEach(found.filter((one) => around.exists(one.python)));
}

/** The interpreter of a virtual environment. */
export function pythonOf(environment: string, isWindows: boolean): string {
  return isWindows ? path.join(environment, "Scripts", "python.exe") : path.join(environment, "bin", "python");
}

function expand(setting: string, around: Pick<Surroundings, "folders" | "home">): string | undefined {
  const [folder] = around.folders;
  const written = setting
    .trim()
    .replace(/^~(?=[/\\]|$)/, () => around.home)
    .replaceAll("${workspaceFolder}", () => folder ?? "");
  if (written === "") {
    return undefined;
  }
  return folder !== undefined && !path.isAbsolute(written) ? path.join(folder, written) : written;
}

/** Only the first interpreter of `PATH` is taken, and each of the others once. */
function firstOfEach(found: readonly Candidate[]): Candidate[] {
  const seen = new Set<string>();
  return found.filter((one) => {
    const key = one.origin === "path" ? "path" : one.python;
    return !seen.has(key) && seen.add(key);
  });
}

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
