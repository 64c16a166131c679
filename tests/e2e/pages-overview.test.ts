import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { openPages, type Pages } from "./support/pages";
import { hottestOf, PROGRAM, report, scratch, traces, type Report } from "./support/recorded";
import { OUTPUT } from "./support/surroundings";

describe("the first page of the dashboard", () => {
  let pages: Pages;
  let recorded: Report;

  beforeAll(async () => {
    const [trace] = traces(inject("project"));
    recorded = report(trace!);
    pages = await openPages([trace!]);
  });
  afterAll(async () => pages.close());

  it("has the lines, the advice and the steps that the report has", async () => {
    await pages.page.screenshot({ path: join(OUTPUT, "pages-overview.png"), fullPage: true });
    const places = pages.page.locator(".hotlines .place");
    expect(await places.first().textContent()).toBe(`${PROGRAM}:${hottestOf(recorded).line}`);
    expect(await pages.page.locator("article.finding").count()).toBe(Math.min(recorded.findings.length, 3));
    expect(await pages.page.locator(".steps .step").count()).toBe(recorded.totals.steps);
  });

  it("shows one step alone, and the way back leads to all", async () => {
    await pages.page.locator(".steps .step").first().click();
    await expect.poll(() => pages.page.url()).toContain("step=");
    await expect.poll(() => pages.page.locator(".steps").count()).toBe(0);
    await pages.page.goBack();
    await expect.poll(() => pages.page.locator(".steps .step").count()).toBe(recorded.totals.steps);
  });

  it("asks nobody else for anything, and nothing fails", () => {
    expect(pages.said).toEqual([]);
  });
});

describe("the list of runs of a folder with a broken one", () => {
  const folder = scratch();
  let pages: Pages;

  beforeAll(async () => {
    copyFileSync(traces(inject("project"))[0]!, join(folder.path, "whole.pt.trace.json.gz"));
    writeFileSync(join(folder.path, "a_name_that_is_too_long_for_a_narrow_panel_4242.rank0.1999999999000000000.pt.trace.json.gz"), "");
    pages = await openPages([folder.path], { width: 380, height: 800 });
  });
  afterAll(async () => {
    await pages.close();
    folder.remove();
  });

  it("says of the broken one what is wrong, in its row", async () => {
    await pages.page.getByTitle("Run", { exact: true }).click();
    const row = pages.page.locator(".runlist li").filter({ hasText: "cannot be shown" });
    const [problem, around, panel] = await Promise.all([row.locator(".problem").boundingBox(), row.boundingBox(), pages.page.locator(".runs .panel").boundingBox()]);
    expect(problem!.y).toBeGreaterThanOrEqual(around!.y);
    expect(problem!.y + problem!.height).toBeLessThanOrEqual(around!.y + around!.height);
    expect(around!.x + around!.width).toBeLessThanOrEqual(panel!.x + panel!.width);
    await pages.page.screenshot({ path: join(OUTPUT, "pages-broken-run.png") });
  });
});
