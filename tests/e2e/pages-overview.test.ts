import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { openPages, type Pages } from "./support/pages";
import { hottestOf, PROGRAM, report, traces, type Report } from "./support/recorded";
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
