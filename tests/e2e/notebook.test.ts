import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { barOf } from "./support/bars";
import { scratch } from "./support/recorded";
import { PYTHON } from "./support/surroundings";
import { Workbench } from "./support/workbench";

const CELLS = [
  "import torch, deepscope\nx = torch.randn(256, 256)\n",
  "def step(x):\n    y = x @ x\n    return y.relu()\n",
  'with deepscope.profile("runs", active=3) as recording:\n    for _ in range(5):\n        step(x)\n        recording.step()\n',
];

describe("a notebook", () => {
  const own = scratch();
  let bench: Workbench;

  beforeAll(async () => {
    const cells = CELLS.map((source, index) => ({ cell_type: "code", id: `cell${index}`, execution_count: null, metadata: {}, outputs: [], source }));
    const kernel = { kernelspec: { name: "python3", display_name: "Python 3", language: "python" }, language_info: { name: "python" } };
    writeFileSync(join(own.path, "train.ipynb"), JSON.stringify({ cells, metadata: kernel, nbformat: 4, nbformat_minor: 5 }));
    const run = "import nbclient, nbformat; nbclient.NotebookClient(nbformat.read('train.ipynb', 4), timeout=300).execute()";
    await promisify(execFile)(PYTHON, ["-c", run], { cwd: own.path });
    bench = await Workbench.open({ folder: own.path, extensions: inject("extensions") });
    await bench.quicklyOpen("train.ipynb");
    await bench.traceShown();
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  it("shows times and heat at the lines of the cells that ran", async () => {
    const line = bench.page.locator(".notebook-editor .view-line").filter({ hasText: /y[ \u00a0]=[ \u00a0]x[ \u00a0]@[ \u00a0]x/ });
    await line.filter({ hasText: /[\d.]+[ \u00a0](µs|ms)[ \u00a0]·[ \u00a0]\d+[ \u00a0]%/ }).waitFor();
    await expect.poll(() => line.evaluate(barOf).then(({ width }) => width)).toBeGreaterThan(10);
    await bench.screenshot("notebook");
  });

  it("has a row lead to the line of its cell, after an edit above it", async () => {
    const code = (text: RegExp) => bench.page.locator(".notebook-editor .view-line").filter({ hasText: text }).first();
    await bench.showDeepScope();
    const row = (line: number) => bench.rows("Hot Lines").filter({ hasText: `train.ipynb:${line}` }).filter({ hasText: /y.=.x.@.x/ }).first();
    await row(2).waitFor();
    const typesIn = (text: RegExp) => bench.page.locator(".notebook-editor .monaco-editor.focused").filter({ hasText: text }).waitFor();
    await code(/def[ \u00a0]step/).click();
    await typesIn(/def[ \u00a0]step/);
    await bench.page.keyboard.press("Home");
    await bench.page.keyboard.type("# one\n# two\n");
    await code(/import[ \u00a0]torch/).click();
    await row(4).click();
    await bench.page.locator(".statusbar").filter({ hasText: "Cell 2 of 3" }).waitFor();
    await typesIn(/def[ \u00a0]step/);
    await bench.page.keyboard.type("here = "); // what is typed stands where the cursor is
    await code(/here[ \u00a0]=[ \u00a0]y[ \u00a0]=[ \u00a0]x[ \u00a0]@[ \u00a0]x/).waitFor();
    await bench.screenshot("notebook-jump");
  });
});
