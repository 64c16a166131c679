import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { scratch, traces } from "./support/recorded";
import { RECORDING_MS } from "./support/waits";
import { Workbench } from "./support/workbench";

const PROGRAM = `import sys

import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.AdamW(model.parameters())

for _ in range(int(sys.argv[-1]) if len(sys.argv) > 1 else 8):
    logits = model(torch.randn(512, 256))
    loss = nn.functional.cross_entropy(logits, torch.randint(0, 10, (512,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
`;

describe("Run with DeepScope", () => {
  const own = scratch();
  let bench: Workbench;

  beforeAll(async () => {
    writeFileSync(join(own.path, "plain.py"), PROGRAM);
    mkdirSync(join(own.path, ".vscode"));
    const task = { type: "deepscope", label: "record it", program: "${workspaceFolder}/plain.py", args: ["--steps", "6"] };
    writeFileSync(join(own.path, ".vscode", "tasks.json"), JSON.stringify({ version: "2.0.0", tasks: [task] }));
    bench = await Workbench.open({ folder: own.path, extensions: inject("extensions") });
    await bench.openFile("plain.py");
    await bench.status.filter({ hasText: "no trace" }).waitFor();
    await bench.showDeepScope();
    await bench.screenshot("no-trace");
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  it("records a plain program as it is, and tells what its time goes to", async () => {
    await bench.run("DeepScope: Run Python File with DeepScope");
    await bench.told(/plain\.py:\d+/, RECORDING_MS);
    await bench.screenshot("run");
    expect(traces(own.path).length).toBe(1);
    await bench.goToLine(10);
    expect(await bench.hint("logits = model(torch.randn(512, 256))")).toContain("%");
  });

  it("is a task of the file that is open, and one of tasks.json", async () => {
    for (const [name, count] of [["Record plain.py", 2], ["record it", 3]] as const) {
      await bench.runTask(name);
      // Each run is a trace of its own, and the newest is shown.
      await expect.poll(() => traces(own.path).length, { timeout: RECORDING_MS }).toBe(count);
      await expect.poll(() => bench.rows("Runs").filter({ hasText: /plain\.py.*a step/ }).count()).toBe(count);
    }
  });
});
