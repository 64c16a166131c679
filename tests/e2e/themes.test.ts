import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { barOf } from "./support/bars";
import { hottestOf, PROGRAM, report, TRACES } from "./support/recorded";
import { Workbench } from "./support/workbench";

const THEMES = [
  ["dark", "Default Dark Modern", "vs-dark"],
  ["light", "Default Light Modern", "vs"],
  ["high-contrast", "Default High Contrast", "hc-black"],
  ["high-contrast-light", "Default High Contrast Light", "hc-light"],
] as const;

describe("heat in every kind of theme", () => {
  let bench: Workbench;

  beforeAll(async () => {
    bench = await Workbench.open({ folder: inject("project"), extensions: inject("extensions") });
    await bench.openFile(PROGRAM);
    await bench.traceShown();
    await bench.showDeepScope();
  });
  afterAll(() => bench.close());

  it("has a colour of its own, which stands out", async () => {
    const hottest = hottestOf(report(join(inject("project"), TRACES)));
    const code = readFileSync(join(inject("project"), PROGRAM), "utf8").split("\n")[hottest.line - 1]!.trim();
    await bench.goToLine(hottest.line);
    const colours = new Set<string>();
    for (const [name, theme, kind] of THEMES) {
      bench.editor.set({ "workbench.colorTheme": theme });
      await bench.page.locator(`.monaco-workbench.${kind}`).waitFor();
      await bench.codeLine(code).locator("span > span").filter({ hasText: "return" }).first().hover();
      await bench.page.locator(".monaco-hover:visible").filter({ hasText: "backward" }).waitFor();
      await bench.screenshot(`theme-${name}`);
      await bench.page.keyboard.press("Escape");
      const { width, colour } = await bench.codeLine(code).evaluate(barOf);
      expect(width).toBeGreaterThan(1);
      colours.add(colour);
    }
    expect(colours.size).toBe(THEMES.length);
  });
});
