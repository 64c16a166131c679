/** Once for all tests: a recorded project, and a folder of extensions with ours installed. */

import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { record, scratch } from "./recorded";
import { CODE_SERVER, NODE, OUTPUT, VSIX } from "./surroundings";

declare module "vitest" {
  export interface ProvidedContext {
    readonly project: string;
    readonly extensions: string;
  }
}

export default function prepare(project: TestProject): () => void {
  rmSync(OUTPUT, { recursive: true, force: true });
  mkdirSync(OUTPUT, { recursive: true });
  const { path, remove } = scratch();
  const extensions = join(path, "extensions");
  const home = join(path, "home");
  mkdirSync(home, { recursive: true });
  execFileSync(
    NODE,
    [CODE_SERVER, "--user-data-dir", join(path, "install-data"), "--extensions-dir", extensions, "--install-extension", VSIX],
    { stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, HOME: home } },
  );
  const recorded = process.env["DEEPSCOPE_E2E_PROJECT"] ?? join(path, "recorded");
  if (process.env["DEEPSCOPE_E2E_PROJECT"] === undefined) {
    record(recorded);
  }
  project.provide("project", recorded);
  project.provide("extensions", extensions);
  return remove;
}
