/** Once for all tests: a recorded project, and a folder of extensions with ours installed. */

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { record, scratch } from "./recorded";
import { CODE_SERVER, NODE, OUTPUT, REPOSITORY, VSIX } from "./surroundings";

declare module "vitest" {
  export interface ProvidedContext {
    readonly project: string;
    /** A folder of extensions that holds ours. */
    readonly extensions: string;
    /** Ours, and one that stands for the Python extension. */
    readonly extensionsWithPython: string;
  }
}

export default function prepare(project: TestProject): () => void {
  rmSync(OUTPUT, { recursive: true, force: true });
  mkdirSync(OUTPUT, { recursive: true });
  const { path, remove } = scratch();
  const extensions = join(path, "extensions");
  const home = join(path, "home");
  mkdirSync(home, { recursive: true });
  const install = (folder: string, packed: string): void => {
    execFileSync(
      NODE,
      [CODE_SERVER, "--user-data-dir", join(path, "install-data"), "--extensions-dir", folder, "--install-extension", packed],
      { stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, HOME: home } },
    );
  };
  install(extensions, VSIX);
  const withPython = join(path, "extensions-with-python");
  cpSync(extensions, withPython, { recursive: true });
  install(withPython, packed(join(import.meta.dirname, "python-extension"), join(path, "python.vsix")));
  const recorded = process.env["DEEPSCOPE_E2E_PROJECT"] ?? join(path, "recorded");
  if (process.env["DEEPSCOPE_E2E_PROJECT"] === undefined) {
    record(recorded);
  }
  project.provide("project", recorded);
  project.provide("extensions", extensions);
  project.provide("extensionsWithPython", withPython);
  return remove;
}

/** Packs the folder of an extension; answers the package. */
function packed(folder: string, out: string): string {
  const vsce = join(REPOSITORY, "vscode-extension", "node_modules", ".bin", "vsce");
  const arguments_ = ["package", "--no-dependencies", "--allow-missing-repository", "--skip-license", "--out", out];
  execFileSync(vsce, arguments_, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  return out;
}
