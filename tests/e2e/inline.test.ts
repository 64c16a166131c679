import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { hottestOf, PROGRAM, report, shareOf, TRACES, type Report } from "./support/recorded";
import { barOf, marksAmong } from "./support/bars";
import { durationNs } from "./support/units";
import { Workbench } from "./support/workbench";

const THEMES = [
  ["dark", "Default Dark Modern", "vs-dark"],
  ["light", "Default Light Modern", "vs"],
  ["high-contrast", "Default High Contrast", "hc-black"],
  ["high-contrast-light", "Default High Contrast Light", "hc-light"],
] as const;

describe("a recorded run in the editor", () => {
  let bench: Workbench;
  let recorded: Report;
  let source: string[];

  beforeAll(async () => {
    const project = inject("project");
    recorded = report(join(project, TRACES));
    source = readFileSync(join(project, PROGRAM), "utf8").split("\n");
    bench = await Workbench.openProgram({
      folder: project,
      extensions: inject("extensions"),
      settings: { "debug.allowBreakpointsEverywhere": true },
    });
  });
  afterAll(() => bench.close());

  it("shows each hot line's time per step and share, as the report says", async () => {
    const hottest = hottestOf(recorded);
    const code = source[hottest.line - 1]!.trim();
    await bench.goToLine(hottest.line);
    const words = await bench.hint(code);
    await bench.screenshot("hints");
    const percent = /^[\d.]+ \S+ · ([\d.]+) %/.exec(words)?.[1];
    const perStep = hottest.cost_per_step_ns;
    expect(Math.abs(durationNs(words) - perStep) / perStep).toBeLessThan(0.006); // three digits
    expect(Number(percent)).toBeCloseTo(100 * shareOf(recorded, hottest), -0.5);
  });

  it("shows the table of numbers when hovering over a hot line", async () => {
    const hottest = hottestOf(recorded);
    const code = source[hottest.line - 1]!.trim();
    await bench.goToLine(hottest.line);
    const hover = await bench.hover(code, "of the run's cost");
    await bench.screenshot("hover");
    expect(await hover.innerText()).toMatch(/\d+ % of the run's cost/);
    await bench.closeHover();
  });

  it("has a hint at hot lines, with their evidence, that is none of the problems", async () => {
    const hottest = hottestOf(recorded);
    await bench.goToLine(hottest.line);
    await bench.page.keyboard.press("Home"); // the editor gives a hint the first two characters of its range
    const hover = bench.page.locator(".monaco-hover:visible").filter({ hasText: "Hot line:" }).first();
    await bench.showHover(hover);
    expect(await hover.innerText()).toMatch(/Hot line: [\d.]+ % of the run's cost/);
    await bench.closeHover();
    await bench.run("Problems: Focus on Problems View");
    const rows = bench.page.locator(".markers-panel .monaco-list-row");
    // What the findings are of this recording depends on the machine; there may be none.
    const none = bench.page.locator(".markers-panel").filter({ hasText: "No problems have been detected" });
    await none.or(rows.filter({ hasText: /DS\d+/ })).first().waitFor();
    expect(await rows.filter({ hasText: "Hot line:" }).count()).toBe(0);
    await bench.run("View: Hide Panel");
  });

  it("draws heat: marks at the gutter and a bar as wide as the line's share", async () => {
    const hottest = hottestOf(recorded);
    const code = source[hottest.line - 1]!.trim();
    await bench.goToLine(hottest.line);
    const share = shareOf(recorded, hottest);
    const line = bench.codeLine(code);
    const width = () => line.evaluate(barOf).then((bar) => bar.width);
    await expect.poll(width).toBeCloseTo(Math.round(120 * share), -0.5);
    const marks = () => bench.page.locator(".editor-instance .view-overlays .cdr").evaluateAll(marksAmong);
    await expect.poll(async () => Math.max(...(await marks()))).toBe(share >= 0.2 ? 4 : 3);
    const together = recorded.lines.filter((line) => line.function === "Block.forward" && shareOf(recorded, line) > 0.02);
    await bench.goToLine(together[0]!.line);
    await expect.poll(async () => (await marks()).length).toBeGreaterThanOrEqual(together.length);

    await bench.goToLine(hottest.line);
    await bench.run("DeepScope: Toggle Heat");
    await expect.poll(width).toBe(0);
    expect(await bench.hint(code)).toContain(" ms · "); // the hint stays
    await bench.run("DeepScope: Toggle Heat");
    await expect.poll(width).toBeGreaterThan(0);
  });

  it("leaves the margin to breakpoints: one on a hot line is seen, and moves no code", async () => {
    const hottest = hottestOf(recorded);
    const code = source[hottest.line - 1]!.trim();
    await bench.goToLine(hottest.line);
    const breakpoint = bench.page.locator(".editor-instance .glyph-margin-widgets .codicon-debug-breakpoint");
    const left = async () => (await bench.codeLine(code).boundingBox())?.x;
    const before = await left();
    await bench.page.keyboard.press("F9");
    await breakpoint.waitFor();
    await bench.screenshot("breakpoint");
    expect(await left()).toBe(before);
    await bench.page.keyboard.press("F9");
    await breakpoint.waitFor({ state: "detached" });
  });

  it("moves a hint with its line when text is typed above, and back by undo", async () => {
    const hottest = hottestOf(recorded);
    const code = source[hottest.line - 1]!.trim();
    const before = await bench.hint(code);
    await bench.goToLine(2);
    await bench.page.keyboard.type("# one\n# two\n");
    await bench.goToLine(hottest.line + 2);
    await expect.poll(() => bench.hint(code)).toBe(before);

    await bench.page.keyboard.press("End");
    await bench.page.keyboard.type("  # edited");
    await bench.codeLine(code).filter({ hasText: /\(edited\)/ }).waitFor();
    await bench.status.filter({ hasText: "text changed since" }).waitFor();
    await bench.screenshot("edited");

    for (let undone = 0; undone < 12 && (await bench.page.locator(".tab.active.dirty").count()) > 0; undone += 1) {
      await bench.page.keyboard.press("Control+Z");
    }
    await bench.page.locator(".tab.active:not(.dirty)").waitFor();
    await bench.goToLine(hottest.line);
    await expect.poll(() => bench.hint(code)).toBe(before);
    await bench.status.filter({ hasNotText: "text changed since" }).waitFor();
  });

  it("has heat of a colour of its own in every kind of theme", async () => {
    const hottest = hottestOf(recorded);
    const code = source[hottest.line - 1]!.trim();
    await bench.goToLine(hottest.line);
    const colours: string[] = [];
    for (const [name, theme, kind] of THEMES) {
      bench.editor.set({ "workbench.colorTheme": theme });
      await bench.page.locator(`.monaco-workbench.${kind}`).waitFor();
      await bench.hover(code, "of the run's cost");
      await bench.screenshot(`theme-${name}`);
      await bench.closeHover();
      const bar = () => bench.codeLine(code).evaluate(barOf);
      await expect.poll(async () => (await bar()).width).toBeGreaterThan(1);
      await expect.poll(async () => colours.includes((await bar()).colour)).toBe(false);
      colours.push((await bar()).colour);
    }
  });
});
