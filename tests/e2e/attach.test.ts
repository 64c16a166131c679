import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { report, scratch, traces } from "./support/recorded";
import { PYTHON } from "./support/surroundings";
import { WAIT_MS } from "./support/waits";
import { Workbench } from "./support/workbench";

const PROGRAM = `import time

import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

while True:
    loss = model(torch.randn(64, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.005)
`;
const COMMAND = "DeepScope: Attach to a Running Job";

describe("Attach to a Running Job", () => {
  const own = scratch();
  const runtime = mkdtempSync(join(tmpdir(), "doors-")); // short: a socket's address is
  const env = { XDG_RUNTIME_DIR: runtime };
  let bench: Workbench;
  let job: ChildProcess | undefined;

  beforeAll(async () => {
    writeFileSync(join(own.path, "waiting.py"), PROGRAM);
    mkdirSync(join(own.path, ".vscode"));
    bench = await Workbench.open({ folder: own.path, extensions: inject("extensions"), env });
    await bench.openFile("waiting.py");
    await bench.status.filter({ hasText: "no trace" }).waitFor();
  });
  afterAll(async () => {
    job?.kill("SIGKILL");
    await bench.close();
    own.remove();
    rmSync(runtime, { recursive: true, force: true });
  });

  /** Chooses the job; waits until the number of steps is asked for. */
  async function choose(): Promise<void> {
    await bench.run(COMMAND);
    const row = bench.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: /pid \d+, step/ });
    await row.waitFor();
    expect((await row.innerText()).replaceAll("\u00a0", " ")).toContain("waiting.py");
    await row.click();
    await bench.page.locator(".quick-input-title").filter({ hasText: "how many steps" }).waitFor();
  }

  it("says how a job is started where none waits", async () => {
    await bench.run(COMMAND);
    await bench.told("deepscope run --on-demand");
  });

  it("records the steps of a job that waits, and the job goes on", async () => {
    job = spawn(PYTHON, ["-m", "deepscope", "run", "--on-demand", "waiting.py"], {
      cwd: own.path,
      env: { ...process.env, ...env, HOME: bench.editor.home },
      stdio: "ignore",
    });
    const doors = join(runtime, "deepscope");
    await expect.poll(() => existsSync(doors) && readdirSync(doors).some((name) => name.endsWith(".json")), { timeout: WAIT_MS }).toBe(true);
    await choose();
    const input = bench.page.locator(".quick-input-widget:visible .quick-input-box input").first();
    expect(await input.inputValue()).toBe("5");
    await input.fill("0");
    const problem = bench.page.locator(".quick-input-message").filter({ hasText: "from 1 to 10,000" });
    await problem.waitFor();
    await input.fill("3");
    await problem.waitFor({ state: "hidden" });
    await bench.screenshot("attach");
    await bench.page.keyboard.press("Enter");
    await bench.told(/waiting\.py:\d+/);
    const [trace, ...others] = traces(own.path);
    expect(others).toEqual([]);
    expect(report(trace ?? "").totals.steps).toBe(3);
    expect(job.exitCode).toBeNull();
  });

  it("remembers the number of steps", async () => {
    await choose();
    expect(await bench.page.locator(".quick-input-widget:visible .quick-input-box input").first().inputValue()).toBe("3");
    await bench.page.keyboard.press("Escape");
  });
});
