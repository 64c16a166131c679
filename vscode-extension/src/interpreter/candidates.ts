/** Which interpreters are tried, and in which order. */

import * as path from "node:path";
import { isBelowAny } from "../folders";

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
