/** A trace of a machine with a device, as the tests of the server build it: stands for one where there is no device. */

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { PYTHON, REPOSITORY } from "./surroundings";

const BUILD = `
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from lsp_profiles import SOURCE, record

root = Path(sys.argv[2])
(root / "train.py").write_text(SOURCE, encoding="utf-8")
record(root)
`;

/** Its program is `train.py`; on line 12 the device is idle, which is a finding. */
export function projectWithDevice(folder: string): string {
  mkdirSync(folder, { recursive: true });
  execFileSync(PYTHON, ["-c", BUILD, join(REPOSITORY, "tests"), folder], { stdio: ["ignore", "ignore", "pipe"] });
  return folder;
}
