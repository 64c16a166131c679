/** Once for all tests: a recorded project, and a folder of extensions with ours installed. */

import { execFile } from "node:child_process";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { startBrowser } from "./browser";
import { record, scratch } from "./recorded";
import { CODE_SERVER, NODE, OUTPUT, REPOSITORY, VSIX } from "./surroundings";

declare module "vitest" {
  export interface ProvidedContext {
    readonly project: string;
    /** Where the browser is that all tests share. */
    readonly browser: string;
    /** A folder of extensions that holds ours. */
    readonly extensions: string;
    /** Ours, and those that stand for the Python extension and for an assistant. */
    readonly extensionsWithPython: string;
  }
}

const run = promisify(execFile);

export default async function prepare(project: TestProject): Promise<() => Promise<void>> {
  rmSync(OUTPUT, { recursive: true, force: true });
  mkdirSync(OUTPUT, { recursive: true });
  const { path, remove } = scratch();
  const extensions = join(path, "extensions");
  const home = join(path, "home");
  mkdirSync(home, { recursive: true });
  const install = async (folder: string, packed: string): Promise<void> => {
    const words = [CODE_SERVER, "--user-data-dir", join(path, "install-data"), "--extensions-dir", folder, "--install-extension", packed];
    await run(NODE, words, { env: { ...process.env, HOME: home } });
  };
  const withPython = join(path, "extensions-with-python");
  const installAll = async (): Promise<void> => {
    await install(extensions, VSIX);
    cpSync(extensions, withPython, { recursive: true });
    for (const name of ["python-extension", "assistant-extension"]) {
      await install(withPython, await packed(join(import.meta.dirname, name), join(path, `${name}.vsix`)));
    }
  };
  const given = process.env["DEEPSCOPE_E2E_PROJECT"];
  const recorded = given ?? join(path, "recorded");
  await Promise.all([installAll(), given === undefined ? record(recorded, 8) : undefined]);
  project.provide("project", recorded);
  project.provide("extensions", extensions);
  project.provide("extensionsWithPython", withPython);
  const browser = await startBrowser();
  project.provide("browser", browser.wsEndpoint());
  return async () => {
    await browser.close();
    remove();
  };
}

/** Packs the folder of an extension; answers the package. */
async function packed(folder: string, out: string): Promise<string> {
  const vsce = join(REPOSITORY, "vscode-extension", "node_modules", ".bin", "vsce");
  const arguments_ = ["package", "--no-dependencies", "--allow-missing-repository", "--skip-license", "--out", out];
  await run(vsce, arguments_, { cwd: folder });
  return out;
}
