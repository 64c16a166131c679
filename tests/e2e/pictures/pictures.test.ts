/**
 * The pictures of the documentation and the walkthrough; not a part of the tests.
 *
 *     DEEPSCOPE_E2E_PROJECT=… npx vitest run --config pictures/vitest.config.ts    (after scripts/test-extension)
 *
 * They come to `build/e2e/picture-*.png`. The project (made by `deepscope demo --folder`) and `DEEPSCOPE_PYTHON` should have paths
 * that may be seen.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, inject, it } from "vitest";
import { openPages } from "../support/pages";
import { hottestOf, PROGRAM, report, TRACES } from "../support/recorded";
import { OUTPUT } from "../support/surroundings";
import { Workbench } from "../support/workbench";

describe("pictures", () => {
  const project = inject("project");
  const hottest = hottestOf(report(join(project, TRACES)));
  const code = readFileSync(join(project, PROGRAM), "utf8").split("\n")[hottest.line - 1]!.trim();
  let bench: Workbench;
  afterEach(() => bench.close());

  const open = async (theme: string, width: number, height: number): Promise<void> => {
    const settings = { "workbench.colorTheme": theme, "window.commandCenter": false, "breadcrumbs.enabled": false, "editor.stickyScroll.enabled": false };
    bench = await Workbench.open({ folder: project, extensions: inject("extensions"), settings, viewport: { width, height }, env: { PYTHONWARNINGS: "ignore" } });
    await bench.openFile(PROGRAM);
    await bench.traceShown();
  };

  /** Nothing moves any more: two pictures in a row are the same. */
  const settle = async (): Promise<void> => {
    let last = await bench.page.screenshot();
    await expect
      .poll(async () => {
        const before = last;
        last = await bench.page.screenshot();
        return before.equals(last);
      }, { interval: 1000 })
      .toBe(true);
  };

  const hover = async (): Promise<void> => {
    await bench.goToLine(hottest.line);
    await bench.hint(code);
    await bench.hover(code, "backward");
  };

  it("the editor, dark", async () => {
    await open("Dark Modern", 1300, 780);
    await bench.showDeepScope();
    await bench.rows("Hot Lines").first().waitFor();
    await hover();
    await settle();
    await bench.screenshot("picture-editor");
  });

  it("the lines, light, for the walkthrough", async () => {
    await open("Light Modern", 1000, 560);
    await bench.run("View: Toggle Primary Side Bar Visibility");
    await bench.goToLine(hottest.line);
    await bench.hint(code);
    await bench.screenshot("picture-lines");
  });

  it("the flame graph beside the code", async () => {
    await open("Light Modern", 1000, 620);
    await bench.run("View: Toggle Primary Side Bar Visibility");
    await bench.goToLine(hottest.line);
    await bench.run("DeepScope: Show in Flame Graph");
    const graph = bench.webview();
    await graph.locator("g.frame").nth(3).waitFor();
    await graph.getByRole("button", { name: "Reset" }).click();
    await settle();
    await bench.screenshot("picture-flame");
  });

  it("the dashboard", async () => {
    await open("Light Modern", 1300, 760);
    await bench.run("View: Toggle Primary Side Bar Visibility");
    await bench.run("DeepScope: Open Dashboard");
    await bench.webview().locator(".hotlines .place").first().waitFor();
    await settle();
    await bench.screenshot("picture-dashboard");
  });

  it("torch-tb-profiler's call frames", async () => {
    await open("Light Modern", 1300, 760);
    await bench.run("View: Toggle Primary Side Bar Visibility");
    await bench.run("DeepScope: Open TensorBoard");
    const profiler = bench.profiler();
    await profiler.getByText("Overview").first().click();
    await profiler.getByText("Operator", { exact: true }).last().click();
    await profiler.locator("button").first().click();
    await profiler.locator("button:enabled").filter({ hasText: "View CallStack" }).first().click();
    await profiler.getByText("View call frames").first().click();
    await profiler.getByText(`${PROGRAM}(`).last().scrollIntoViewIfNeeded();
    await profiler.getByRole("button", { name: "Google Charts could not be loaded" }).click();
    await settle();
    await bench.screenshot("picture-tensorboard");
  });

  it("a run recorded, and its notice", async () => {
    await open("Light Modern", 1060, 760);
    await bench.run("View: Toggle Primary Side Bar Visibility");
    await bench.goToLine(hottest.line);
    await bench.run("DeepScope: Run Python File with DeepScope");
    await bench.notification(/: step \d/).waitFor();
    await bench.screenshot("picture-record");
  });
});

describe("pictures of the pages", () => {
  it("the overview and the timeline", async () => {
    const pages = await openPages([join(inject("project"), TRACES)], { width: 1280, height: 780 });
    await pages.page.screenshot({ path: join(OUTPUT, "picture-overview.png") });
    await pages.show("timeline");
    await expect.poll(() => pages.page.locator(".timeline").getAttribute("data-slices")).not.toBeNull();
    await pages.page.waitForTimeout(2000); // a canvas does not say when it has drawn
    await pages.page.screenshot({ path: join(OUTPUT, "picture-timeline.png") });
    await pages.close();
  });
});
