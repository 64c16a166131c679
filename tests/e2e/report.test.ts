import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { hottestOf, PROGRAM, report, scratch, traces, type Report } from "./support/recorded";
import { OUTPUT, PYTHON } from "./support/surroundings";
import { WAIT_MS } from "./support/waits";

/** `deepscope export --to html`, opened from disk in a browser without a network. */
describe("the page of a run", () => {
  const own = scratch();
  const asked: string[] = [];
  const said: string[] = [];
  let browser: Browser;
  let page: Page;
  let recorded: Report;

  beforeAll(async () => {
    const [trace] = traces(inject("project"));
    const file = join(own.path, "run.html");
    execFileSync(PYTHON, ["-m", "deepscope", "export", "--to", "html", trace!, "-o", file]);
    recorded = report(trace!);
    browser = await chromium.connect(inject("browser"), { timeout: WAIT_MS });
    page = await (await browser.newContext({ viewport: { width: 1300, height: 900 }, reducedMotion: "reduce" })).newPage();
    page.setDefaultTimeout(WAIT_MS);
    page.on("request", (request) => asked.push(request.url()));
    page.on("console", (message) => said.push(message.text()));
    page.on("pageerror", (error) => said.push(error.message));
    await page.goto(pathToFileURL(file).href);
    await page.locator("#view-overview").waitFor();
  });
  afterAll(async () => {
    await browser.close();
    own.remove();
  });

  const view = (id: string): ReturnType<Page["locator"]> => page.locator(`#view-${id}`);

  it("begins with what matters", async () => {
    await page.screenshot({ path: join(OUTPUT, "report-overview.png") });
    expect(await view("overview").locator("dd").first().textContent()).toMatch(/\d/);
    expect(await view("overview").locator("article.finding").count()).toBeGreaterThan(0);
    expect(await view("overview").locator("svg.chart rect").count()).toBeGreaterThanOrEqual(recorded.totals.steps);
  });

  it("has a row for each line, sorted by a click and filtered by words", async () => {
    await page.getByRole("link", { name: "Lines" }).click();
    const rows = view("lines").locator("tbody tr");
    await rows.first().waitFor();
    const shown = await view("lines").locator(".tools .muted").textContent();
    expect(Number(/of (\d+) rows/.exec(shown ?? "")?.[1])).toBeGreaterThanOrEqual(recorded.lines.length);
    await view("lines").getByRole("button", { name: "operators self" }).click();
    const hottest = hottestOf(recorded);
    await expect.poll(() => rows.first().locator("td").first().textContent()).toBe(`${PROGRAM}:${hottest.line}`);
    await view("lines").getByPlaceholder("Filter").fill(`:${hottest.line}`);
    await expect.poll(() => rows.count()).toBeLessThan(recorded.lines.length);
    await view("lines").getByPlaceholder("Filter").fill("");
  });

  it("shows a line's source, and the way back leads to the table", async () => {
    const hottest = hottestOf(recorded);
    await view("lines").getByRole("button", { name: `${PROGRAM}:${hottest.line}`, exact: true }).click();
    const marked = view("source").locator("tr.marked");
    await marked.waitFor();
    expect(await marked.locator("td").first().textContent()).toBe(String(hottest.line));
    expect((await marked.locator("pre").textContent())?.trim()).not.toBe("");
    await page.screenshot({ path: join(OUTPUT, "report-source.png") });
    await page.goBack();
    await view("lines").waitFor();
    expect(await view("source").isVisible()).toBe(false);
  });

  it("draws a flame graph that can be searched", async () => {
    await page.getByRole("link", { name: "Flame graph" }).click();
    await view("flame").locator("g.frame").nth(5).waitFor();
    await view("flame").getByPlaceholder("Search").fill("aten::");
    await expect.poll(() => view("flame").locator(".details.muted").textContent()).toMatch(/^\d+ frames, /);
    await page.screenshot({ path: join(OUTPUT, "report-flame.png") });
    await view("flame").locator("g.frame").filter({ hasText: PROGRAM }).first().click();
    await view("flame").getByRole("button", { name: "show the line" }).click();
    await view("source").locator("tr.marked").waitFor();
  });

  it("follows the browser's dark theme", async () => {
    const background = (): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await background()).not.toBe(light);
    await page.getByRole("link", { name: "Overview" }).click();
    await page.screenshot({ path: join(OUTPUT, "report-dark.png") });
  });

  it("has asked nothing of anybody, and broken no rule of its own", () => {
    expect(asked.filter((url) => !url.startsWith("file:"))).toEqual([]);
    expect(said).toEqual([]);
  });
});
