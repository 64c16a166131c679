import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { hottestOf, PROGRAM, report, scratch, traces, type Report } from "./support/recorded";
import { OUTPUT, PYTHON } from "./support/surroundings";
import { WAIT_MS } from "./support/waits";

/** `deepscope export --format html`, opened from disk. */
describe("the dashboard as a file", () => {
  const own = scratch();
  const asked: string[] = [];
  const said: string[] = [];
  let browser: Browser;
  let page: Page;
  let recorded: Report;

  beforeAll(async () => {
    const [trace] = traces(inject("project"));
    const file = join(own.path, "run.html");
    execFileSync(PYTHON, ["-m", "deepscope", "export", "--format", "html", trace!, "-o", file]);
    recorded = report(trace!);
    browser = await chromium.connect(inject("browser"), { timeout: WAIT_MS });
    page = await (await browser.newContext({ viewport: { width: 1300, height: 900 }, reducedMotion: "reduce" })).newPage();
    page.setDefaultTimeout(WAIT_MS);
    page.on("request", (request) => asked.push(request.url()));
    page.on("console", (message) => said.push(message.text()));
    page.on("pageerror", (error) => said.push(error.message));
    await page.goto(pathToFileURL(file).href);
    await page.locator("main h1").waitFor();
  });
  afterAll(async () => {
    await browser.close();
    own.remove();
  });

  it("begins with what matters, and offers no step that is not in it", async () => {
    expect(await page.locator(".hotlines .place").first().textContent()).toContain(PROGRAM);
    const steps = page.locator(".steps button");
    expect(await steps.count()).toBe(recorded.totals.steps);
    expect(await steps.first().isDisabled()).toBe(true);
    expect(await page.getByLabel("Step", { exact: true }).count()).toBe(0);
    await page.screenshot({ path: join(OUTPUT, "file-overview.png") });
  });

  it("shows every page that it offers, and says which need a server", async () => {
    const links = page.locator("nav.pages a");
    const count = await links.count();
    expect(count).toBeGreaterThanOrEqual(6);
    for (let number = 0; number < count; number++) {
      await links.nth(number).click();
      await expect.poll(() => page.locator("main h1").textContent()).toBe(await links.nth(number).textContent());
      expect(await page.locator("[role=alert]").count()).toBe(0);
    }
    expect(await page.locator("nav .missing").textContent()).toContain("Timeline");
  });

  it("offers no link to what is not in it", async () => {
    const pages = await page.locator("nav.pages a").evaluateAll((all) => all.map((one) => one.getAttribute("href") ?? ""));
    const links = new Set<string>();
    for (const address of pages) {
      await page.goto(new URL(address, page.url()).href);
      await page.locator("main h1").waitFor();
      const found = await page.locator("main a[href^='#']").evaluateAll((all) => all.map((one) => one.getAttribute("href") ?? ""));
      found.forEach((one) => links.add(one));
    }
    expect(links.size).toBeGreaterThan(pages.length);
    for (const address of links) {
      await page.goto(new URL(address, page.url()).href);
      await page.locator("main h1").waitFor();
      expect(await page.locator("[role=alert]").allTextContents(), address).toEqual([]);
    }
  });

  it("has the text of the hottest line, and the way back", async () => {
    const { line } = hottestOf(recorded);
    await page.getByRole("link", { name: "Overview" }).click();
    await page.locator(".hotlines .place", { hasText: `${PROGRAM}:` }).first().click();
    await expect.poll(() => page.url()).toContain("#/lines?");
    await expect.poll(() => page.locator("main").textContent()).toContain("def ");
    expect(recorded.lines.some((one) => one.line === line)).toBe(true);
    await page.goBack();
    await page.locator(".hotlines").waitFor();
  });

  it("leads back from what is not in it", async () => {
    await page.evaluate(() => {
      window.location.hash = "#/overview?step=99999";
    });
    expect(await page.locator("[role=alert]").textContent()).toContain("deepscope view");
    await page.locator(".wayback a").click();
    await page.locator(".hotlines").waitFor();
  });

  it("has asked nothing of anybody, and broken no rule of its own", () => {
    expect(asked.filter((url) => !url.startsWith("file:") && !url.startsWith("data:"))).toEqual([]);
    expect(said).toEqual([]);
  });
});
