import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { doctor } from "./support/doctored";
import { copyProject, PROGRAM, scratch, traces } from "./support/recorded";
import { Workbench } from "./support/workbench";

describe("a workspace of two folders", () => {
  const own = scratch();
  let bench: Workbench;

  beforeAll(async () => {
    for (const name of ["first", "second"]) {
      const project = copyProject(inject("project"), join(own.path, name));
      doctor(traces(project)[0]!, (header) => {
        header.device.name = `Device ${name}`;
        header.files[0]!.path = join(project, `${name}.py`);
      });
      renameSync(join(project, PROGRAM), join(project, `${name}.py`));
    }
    const workspace = join(own.path, "both.code-workspace");
    writeFileSync(workspace, JSON.stringify({ folders: [{ path: "first" }, { path: "second" }] }));
    bench = await Workbench.open({ folder: workspace, extensions: inject("extensions") });
    await bench.openFile("first.py");
    await bench.traceShown();
    await bench.showDeepScope();
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  it("shows the trace of the folder that the active file is in", async () => {
    for (const name of ["second", "first"]) {
      await bench.openFile(`${name}.py`);
      const row = bench.rows("Hot Lines").first();
      await row.filter({ hasText: `${name}.py` }).waitFor();
      await row.click();
      await bench.page.locator(".tab.active").filter({ hasText: `${name}.py` }).waitFor();
    }
    // Both are shown, each for the files of its folder.
    await expect.poll(() => bench.rows("Runs").filter({ hasText: "fit" }).count()).toBe(2);
    await bench.screenshot("folders");
  });
});
