/** Python environments made for a test, which see the packages of the one that runs the tests. */

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PYTHON, REPOSITORY } from "./surroundings";

/** A virtual environment with all the packages there are but DeepScope itself; answers its interpreter. */
export function environmentWithoutDeepScope(folder: string): string {
  const packages = join(folder, "packages");
  execFileSync(PYTHON, ["-m", "venv", "--without-pip", folder]);
  mkdirSync(packages);
  const from = purelib(PYTHON);
  for (const name of readdirSync(from)) {
    if (!/deepscope|\.pth$/.test(name)) {
      symlinkSync(join(from, name), join(packages, name));
    }
  }
  const python = join(folder, "bin", "python");
  writeFileSync(join(purelib(python), "packages.pth"), `${packages}\n`);
  return python;
}

/** A virtual environment with everything; answers its interpreter. */
export function environmentWithDeepScope(folder: string): string {
  execFileSync(PYTHON, ["-m", "venv", "--without-pip", folder]);
  const python = join(folder, "bin", "python");
  // As a folder of packages in its own right, so that its own `.pth` files count.
  writeFileSync(join(purelib(python), "all.pth"), `import site; site.addsitedir(${JSON.stringify(purelib(PYTHON))})\n`);
  return python;
}

/** Has an environment hold a DeepScope of another version, as far as pip and the extension can see. */
export function pretendInstalled(python: string, version: string): void {
  const name = `deepscope-${version}.dist-info`;
  const folder = join(purelib(python), name);
  mkdirSync(folder);
  writeFileSync(join(folder, "METADATA"), `Metadata-Version: 2.1\nName: deepscope\nVersion: ${version}\n`);
  writeFileSync(join(folder, "INSTALLER"), "pip\n");
  writeFileSync(join(folder, "RECORD"), ["METADATA", "INSTALLER", "RECORD"].map((file) => `${name}/${file},,\n`).join(""));
}

/** Builds DeepScope's wheel into a folder, which then is all that pip knows of; answers pip's variables. */
export function indexOfOurOwn(folder: string): Record<string, string> {
  const pip = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", folder, REPOSITORY];
  execFileSync(PYTHON, pip, { stdio: ["ignore", "ignore", "inherit"] });
  return { PIP_NO_INDEX: "1", PIP_FIND_LINKS: folder, PIP_CONFIG_FILE: "/dev/null" };
}

function purelib(python: string): string {
  return execFileSync(python, ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], { encoding: "utf8" }).trim();
}
