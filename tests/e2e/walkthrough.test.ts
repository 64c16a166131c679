import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { hottestOf, PROGRAM, report, TRACES } from "./support/recorded";
import { Workbench } from "./support/workbench";

describe("the walkthrough", () => {
  let bench: Workbench;

  beforeAll(async () => {
    bench = await Workbench.open({ folder: inject("project"), extensions: inject("extensions") });
  });
  afterAll(() => bench.close());

  it("has steps with pictures", async () => {
    await bench.run("Welcome: Open Walkthrough...");
    await bench.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "Get Started with DeepScope" }).click();
    const steps = bench.page.locator(".getting-started-step");
    await steps.nth(4).waitFor();
    const pictures = { "Record a run": "record", "Read the lines": "lines", "Follow the call paths": "flame", "Open the dashboard": "dashboard" };
    for (const [title, name] of Object.entries(pictures)) {
      await steps.filter({ hasText: title }).locator(".step-title").click();
      const picture = bench.page.locator(`.getting-started-media img[srcset*="${name}.png"]`);
      await picture.waitFor();
      await expect.poll(() => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBeGreaterThan(500);
      await bench.screenshot(`walkthrough-${name}`);
    }
  });

  it("ticks each step when it is done, by whatever way", async () => {
    const ticked = (): Promise<string[]> =>
      bench.page
        .locator(".getting-started-step [data-done-step-id].complete")
        .evaluateAll((ticks) => ticks.map((tick) => (tick.getAttribute("data-done-step-id") ?? "").replace(/.*#/, "")));
    await bench.openFile(PROGRAM);
    await bench.traceShown();
    await bench.showTab("Welcome");
    await expect.poll(ticked).toEqual(["install", "record"]);
    await bench.showDeepScope();
    await bench.rows("Hot Lines").first().waitFor();
    await expect.poll(ticked).toEqual(["install", "record", "lines"]);
    await bench.showTab(PROGRAM);
    await bench.jump(bench.rows("Hot Lines").first(), hottestOf(report(join(inject("project"), TRACES))).line);
    await bench.run("DeepScope: Show in Dashboard");
    await bench.page.locator(".tab.active").filter({ hasText: "DeepScope" }).first().waitFor();
    await bench.showTab("Welcome");
    await expect.poll(ticked).toEqual(["install", "record", "lines", "dashboard"]);
    await bench.showTab(PROGRAM);
    await bench.run("DeepScope: Show in Flame Graph");
    await bench.webview().locator("g.frame").first().waitFor();
    await bench.showTab("Welcome");
    await expect.poll(ticked).toEqual(["install", "record", "lines", "graph", "dashboard"]);
    await bench.screenshot("walkthrough-ticks");
  });
});
