/** Where the tools are that the tests need; `scripts/test-extension` sets these variables. */

import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

export const REPOSITORY = resolve(import.meta.dirname, "../../..");

const cache = process.env["DEEPSCOPE_E2E_CACHE"] ?? join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "deepscope", "e2e");

/** The interpreter that records, and that the extension is to use. */
export const PYTHON = required("DEEPSCOPE_PYTHON", join(REPOSITORY, ".venv", "bin", "python"));
/** Node 24, which code-server needs. */
export const NODE = required("DEEPSCOPE_E2E_NODE", join(cache, "node", "node_modules", "node", "bin", "node"));
export const CODE_SERVER = required(
  "DEEPSCOPE_E2E_CODE_SERVER",
  join(cache, "code-server", "node_modules", "code-server", "out", "node", "entry.js"),
);
export const CHROMIUM = required("DEEPSCOPE_E2E_CHROMIUM", "/usr/bin/chromium");
export const VSIX = required("DEEPSCOPE_VSIX", join(REPOSITORY, "vscode-extension", "deepscope.vsix"));

/** Whether files are tried once more: scripts/test-extension. */
export const IS_AGAIN = process.env["DEEPSCOPE_E2E_FILES"] !== undefined;

/** Pictures and logs of the last run: build output. Those of the second time lie beside those of the first. */
export const OUTPUT = join(REPOSITORY, "build", "e2e", ...(IS_AGAIN ? ["again"] : []));

function required(variable: string, fallback: string): string {
  const path = process.env[variable] ?? fallback;
  if (!existsSync(path)) {
    throw new Error(`${path} is missing (${variable}); run scripts/test-extension, which gets what these tests need`);
  }
  return path;
}
