import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { openPages, type Pages } from "./support/pages";
import { busiestOf, hottestOf, PROGRAM, report, traces, type Report } from "./support/recorded";
import { OUTPUT } from "./support/surroundings";
import { durationNs } from "./support/units";

describe("the pages of lines and of the flame graph", () => {
  let pages: Pages;
  let recorded: Report;
  let place: string;

  beforeAll(async () => {
    const [trace] = traces(inject("project"));
    recorded = report(trace!);
    const { file, line } = hottestOf(recorded);
    place = `file=${encodeURIComponent(file)}&line=${line}`;
    pages = await openPages([trace!]);
  });
  afterAll(async () => pages.close());

  const figure = (name: string): Promise<string | null> => pages.page.locator(".linepanel .numbers div", { has: pages.page.locator(`dt:text-is("${name}")`) }).locator("dd").textContent();

  it("a click on a place shows the source with the line marked, and what the report says of it", async () => {
    const link = pages.page.locator(".hotlines .place").first();
    const line = Number((await link.textContent())?.replace(`${PROGRAM}:`, ""));
    const recordedLine = recorded.lines.find((one) => one.line === line);
    await link.click();
    const marked = pages.page.locator(".sourcerow.selected");
    await marked.waitFor();
    await pages.page.locator(".linepanel h2").waitFor();
    await pages.page.screenshot({ path: join(OUTPUT, "pages-lines.png") });
    expect(await marked.locator(".lineno").textContent()).toBe(String(line));
    expect(await marked.isVisible()).toBe(true);
    expect(durationNs((await figure("CPU")) ?? "") / recordedLine!.self_cpu_ns).toBeCloseTo(1, 1);
    expect(await pages.page.locator('.linepanel .actions a[href^="vscode://file/"]').getAttribute("href")).toMatch(new RegExp(`/${PROGRAM}:${line}$`));
  });

  it("the tree below the line opens and closes by keys", async () => {
    const tree = pages.page.locator(".belowtree");
    const rows = tree.locator("[role=treeitem]");
    await tree.focus();
    await pages.page.keyboard.press("Home");
    await pages.page.keyboard.press("ArrowLeft");
    await expect.poll(() => rows.count()).toBe(1);
    await pages.page.keyboard.press("ArrowRight");
    await expect.poll(() => rows.count()).toBeGreaterThan(1);
  });

  it("keys lead from one measured line to the next, and back to the page before", async () => {
    await pages.show(`lines?${place}`);
    await pages.page.locator(".sourcerow.selected").waitFor();
    await pages.page.locator(".sourcelines").focus();
    await pages.page.keyboard.press("ArrowUp");
    await expect.poll(() => pages.page.url()).not.toContain(`line=${hottestOf(recorded).line}`);
    const line = Number(await pages.page.locator(".sourcerow.selected .lineno").textContent());
    expect(recorded.lines.map((one) => one.line)).toContain(line);
  });

  it("all lines stand in a list, and another order is kept in the address", async () => {
    await pages.show("lines?view=list");
    const rows = pages.page.locator(".grid tbody tr:not(.gap)");
    await rows.first().waitFor();
    expect(await pages.page.locator(".datatable .foot").textContent()).toMatch(/\d+ rows/);
    await pages.page.locator("th button", { hasText: /^self/ }).first().click();
    await expect.poll(() => pages.page.url()).toMatch(/sort=-?self/);
    await expect.poll(() => rows.first().locator("a").textContent()).toBe(`${PROGRAM}:${busiestOf(recorded).line}`);
  });

  it("the flame graph marks a line's boxes, tells of a box that is clicked, and leads to its line", async () => {
    await pages.show(`flame?${place}`);
    await expect.poll(() => pages.page.locator(".flamedetails").textContent()).toContain(`${PROGRAM}:${hottestOf(recorded).line}`);
    await pages.page.locator(".flametools button", { hasText: "Reset" }).click();
    const boxes = pages.page.locator(".d3-flame-graph g.frame");
    expect(await boxes.count()).toBeGreaterThan(20);
    await boxes.filter({ hasText: `${PROGRAM}:` }).first().click();
    await pages.page.locator(".flamebox h2").waitFor();
    await pages.page.screenshot({ path: join(OUTPUT, "pages-flame.png") });
    await pages.page.locator(".flamebox .place").click();
    await expect.poll(() => pages.page.url()).toContain("#/lines?");
    await pages.page.goBack();
    await boxes.filter({ hasText: `${PROGRAM}:` }).first().click({ modifiers: ["Control"] });
    await expect.poll(() => pages.page.url()).toContain("#/lines?");
  });

  it("callers stand below kernels and operators, and searching sums boxes up", async () => {
    await pages.show("flame?direction=up");
    const first = pages.page.locator(".d3-flame-graph g.frame");
    await first.first().waitFor();
    await pages.page.locator(".flametools .search").fill("aten::");
    await expect.poll(() => pages.page.locator(".flamedetails").textContent()).toMatch(/^\d+ boxes, .+ %$/);
  });

  it("asks nobody else for anything, and nothing fails", () => {
    expect(pages.said).toEqual([]);
  });
});
