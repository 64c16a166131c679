import { renameSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { doctor } from "./support/doctored";
import { copyProject, PROGRAM, record, report, scratch, traces, type Report } from "./support/recorded";
import { durationNs } from "./support/units";
import { Workbench } from "./support/workbench";

describe("a run of two ranks", () => {
  const own = scratch();
  const project = join(own.path, "ranks");
  let bench: Workbench;

  beforeAll(async () => {
    copyProject(inject("project"), project);
    record(project, 6); // a second process of the same run, as far as its name and its header say
    let runId = "";
    for (const [rank, trace] of traces(project).entries()) {
      doctor(trace, (header) => {
        runId ||= header.run_id;
        Object.assign(header, { run_id: runId, rank, world_size: 2 });
        header.files[0]!.path = join(project, PROGRAM);
        header.project_root = project;
      });
      renameSync(trace, trace.replace(/[^/]+\.rank0/, `worker.fit.rank${rank}`));
    }
    bench = await Workbench.open({ folder: project, extensions: inject("extensions") });
    await bench.openFile(PROGRAM);
    await bench.traceShown();
    await bench.showDeepScope();
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  it("is one run in the list", async () => {
    await expect.poll(() => bench.rows("Runs").filter({ hasText: /rank [01]/ }).count()).toBe(2);
    expect(await bench.rows("Runs").count()).toBe(3);
  });

  it("has a flame graph of all ranks and of each", async () => {
    await bench.run("DeepScope: Open Flame Graph");
    const graph = bench.webview();
    const total = async (): Promise<number> => durationNs(await graph.locator("#caption").innerText());
    await graph.locator("g.frame").nth(3).waitFor();
    const perStep = ({ totals }: Report): number => totals.device_ns / totals.steps;
    for (const [rank, trace] of traces(project).entries()) {
      await graph.locator("#rank").selectOption(String(rank));
      const expected = perStep(report(trace));
      await expect.poll(async () => Math.abs((await total()) - expected) / expected).toBeLessThan(0.01);
    }
    await bench.screenshot("ranks");
    await graph.locator("#rank").selectOption("all");
    const [one, other] = traces(project).map((trace) => perStep(report(trace)));
    const mean = (one! + other!) / 2;
    await expect.poll(async () => Math.abs((await total()) - mean) / mean).toBeLessThan(0.01);
  });
});
