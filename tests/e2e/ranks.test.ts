import { cpSync, renameSync } from "node:fs";
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
    await record(project, 8); // a second process of the same run: by its arguments, its name and its header
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
    for (const trace of traces(project)) {
      const before = trace.replace("worker.fit", "before.fit");
      cpSync(trace, before);
      doctor(before, (header) => Object.assign(header, { run_id: "before", recorded_at: "2020-01-01T00:00:00+00:00" }));
    }
    bench = await Workbench.openProgram({ folder: project, extensions: inject("extensions") });
    await bench.showDeepScope();
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  it("is one run in the list", async () => {
    await expect.poll(() => bench.rows("Runs").filter({ hasText: /rank [01]/ }).count()).toBe(4);
    await expect.poll(() => bench.rows("Runs").filter({ hasText: /2 ranks/ }).count()).toBe(2);
    await expect.poll(() => bench.rows("Runs").count()).toBe(6);
  });

  it("has a flame graph of all ranks and of each", async () => {
    await bench.run("DeepScope: Show in Flame Graph");
    const graph = bench.webview();
    const total = async (): Promise<number> => durationNs((await graph.locator('g.frame[name="all"] title').textContent()) ?? "");
    await graph.locator("g.frame").nth(3).waitFor();
    const whole = ({ totals }: Report): number => totals.device_ns;
    const ranks = traces(project).filter((trace) => trace.includes("worker.fit"));
    for (const [rank, trace] of ranks.entries()) {
      await graph.getByLabel("Rank", { exact: true }).selectOption(String(rank));
      const expected = whole(report(trace));
      await expect.poll(async () => Math.abs((await total()) - expected) / expected).toBeLessThan(0.01);
    }
    await bench.screenshot("ranks");
    await graph.getByLabel("Rank", { exact: true }).selectOption("");
    const both = ranks.map((trace) => whole(report(trace))).reduce((sum, one) => sum + one);
    await expect.poll(async () => Math.abs((await total()) - both) / both).toBeLessThan(0.01);
  });

  it("is compared with, and opened in TensorBoard, from its row", async () => {
    const runs = bench.rows("Runs").filter({ hasText: /2 ranks/ });
    const baselines = bench.rows("Runs").filter({ hasText: "baseline" });
    await expect.poll(() => baselines.count()).toBe(3); // by itself: the run before, and each of its ranks
    await bench.run("DeepScope: Toggle Baseline");
    await expect.poll(() => baselines.count()).toBe(0);
    await runs.nth(1).hover();
    await runs.nth(1).getByRole("button", { name: /Toggle Baseline/ }).click();
    await expect.poll(() => baselines.count()).toBe(3);
    await bench.screenshot("ranks-compared");
    await bench.chooseFromMenu(runs.nth(1), "Open TensorBoard");
    await bench.profiler().getByText("Overview").first().waitFor();
    // The other run's traces lie in the same folder.
    await bench.profiler().locator("body").filter({ hasText: /Number of Worker\(s\)\s*2/ }).waitFor();
    await bench.profiler().getByText("before.fit.rank0").first().waitFor();
    await bench.screenshot("ranks-tensorboard");
  });
});
