import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { projectWithDevice } from "./support/device";
import { copyProject, hottestOf, placeInRow, PROGRAM, report, scratch, TRACES, type Report, type ReportLine } from "./support/recorded";
import { ATTEMPT_MS, attempts } from "./support/waits";
import { Workbench } from "./support/workbench";

/** Every view that jumps, in one editor after the other edit; lines are named as they were recorded. */
describe("a jump after an edit", () => {
  const own = scratch();
  const project = join(own.path, "jumps");
  const program = join(project, PROGRAM);
  let bench: Workbench;
  let recorded: Report;
  let hottest: ReportLine;
  /** Calls the hottest line's function. */
  let caller: ReportLine;
  let source: string[];

  beforeAll(async () => {
    copyProject(inject("project"), project);
    recorded = report(join(project, TRACES));
    hottest = hottestOf({ ...recorded, lines: recorded.lines.filter((line) => line.function === "Block.forward") });
    caller = recorded.lines.find((line) => line.function === "CharTransformer.forward")!;
    source = readFileSync(program, "utf8").split("\n");
    bench = await Workbench.openProgram({
      folder: project,
      extensions: inject("extensions"),
      settings: { "deepscope.codeLens": true },
    });
    await bench.showDeepScope();
    await bench.rows("Hot Lines").filter({ hasText: `:${hottest.line}` }).first().waitFor();
    await bench.run("DeepScope: Show in Flame Graph");
    await box().waitFor();
    await bench.showTab(PROGRAM);
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  /** A box of the hottest line, which has the name that was recorded. */
  const box = (): Locator => bench.webview().locator(`g.frame[name*=":${hottest.line}"]`).first();

  /** Jumps from each view, and stands where a recorded line is now: so many lines lower. */
  async function everyViewLeads(lower: number): Promise<void> {
    const place = `${PROGRAM}:${hottest.line + lower}`;
    const away = async (): Promise<void> => {
      await bench.showTab(PROGRAM);
      await bench.goToLine(1);
    };

    await away();
    await bench.jump(bench.rows("Hot Lines").filter({ hasText: placeInRow(hottest.line + lower) }).first(), hottest.line + lower);

    const paths = bench.page.locator(".pane").filter({ has: bench.page.locator(".pane-header", { hasText: "Call Paths" }) });
    await paths.filter({ hasText: `${place} · per step` }).waitFor();
    await bench.jump(bench.rows("Call Paths").filter({ hasText: placeInRow(caller.line + lower) }).first(), caller.line + lower);

    await away();
    await bench.jump(box(), hottest.line + lower, "Control");

    await bench.goToLine(hottest.line + lower);
    const link = bench.page.locator(".monaco-hover:visible a").filter({ hasText: `:${caller.line + lower}` }).first();
    await bench.showHover(link);
    await link.click();
    await bench.atLine(caller.line + lower);

    await bench.goToLine(hottest.line + lower);
    await pickFromLens(source[hottest.line - 1]!.trim(), `:${caller.line + lower}`);
    await bench.atLine(caller.line + lower);
  }

  /** Once more where the lenses were drawn anew between the look and the click, which then hit another one. */
  async function pickFromLens(code: string, item: string): Promise<void> {
    await attempts(
      async () => {
        await (await lensAbove(code)).click({ timeout: ATTEMPT_MS });
        await bench.pick("Called from", item, { timeout: ATTEMPT_MS });
      },
      () => bench.page.keyboard.press("Escape"),
    );
  }

  /** The last lens above a line of code: that of its function, once edits have moved all lenses to their places. */
  async function lensAbove(code: string): Promise<Locator> {
    const lenses = bench.page.locator(".editor-instance .codelens-decoration a").filter({ hasText: /, cost/, visible: true });
    const drawn = async (): Promise<{ readonly below: number; readonly tops: readonly number[] }> => ({
      below: (await bench.codeLine(code).boundingBox())?.y ?? 0,
      tops: await lenses.evaluateAll((found) => found.map((lens) => lens.getBoundingClientRect().top)),
    });
    let last = await drawn();
    await expect
      .poll(async () => {
        const [before, now] = [last, await drawn()];
        last = now;
        return JSON.stringify(before) === JSON.stringify(now);
      }, { interval: 500 })
      .toBe(true);
    const nearest = Math.max(...last.tops.filter((top) => top < last.below));
    return lenses.nth(last.tops.indexOf(nearest));
  }

  it("leads to the line from every view, when three lines were typed at the top and not saved", async () => {
    await bench.goToLine(1);
    await bench.page.keyboard.press("Home");
    await bench.page.keyboard.type("# one\n# two\n# three\n");
    await bench.page.locator(".tab.active.dirty").waitFor();
    await everyViewLeads(3);
    await bench.screenshot("jumps");
  });

  it("leads there when lines above were deleted", async () => {
    await bench.showTab(PROGRAM);
    await bench.goToLine(1);
    for (let deleted = 0; deleted < 9; deleted += 1) {
      await bench.page.keyboard.press("Control+Shift+K"); // the three, and the docstring's first six
    }
    await everyViewLeads(-6);
  });

  it("leads above the place of a line that was deleted itself, and says so", async () => {
    await bench.showTab(PROGRAM);
    await bench.goToLine(hottest.line - 6);
    await bench.page.keyboard.press("Control+Shift+K");
    await bench.goToLine(1);
    await box().click({ modifiers: ["Control"] });
    await bench.page.locator(".statusbar").filter({ hasText: "no longer there" }).waitFor();
    await bench.atLine(hottest.line - 7);
  });

  it("leads there in a file that was closed without saving, and changed on disk", async () => {
    const row = bench.rows("Hot Lines").filter({ hasText: placeInRow(hottest.line) }).first();
    await bench.showTab(PROGRAM);
    await bench.run("File: Revert File");
    await bench.goToLine(hottest.line); // the list follows the cursor, and has no more rows than are in view
    await row.waitFor();
    await bench.run("View: Close Editor");
    await expect.poll(() => bench.page.locator(".tab").filter({ hasText: PROGRAM }).count()).toBe(0);
    writeFileSync(program, `# 1\n# 2\n# 3\n# 4\n# 5\n${source.join("\n")}`);
    await bench.jump(bench.rows("Hot Lines").filter({ hasText: placeInRow(hottest.line + 5) }).first(), hottest.line + 5);
  });

  it("leads there from a frame in TensorBoard", async () => {
    await bench.showTab("DeepScope Dashboard");
    await bench.page.locator(".tab.active").filter({ hasText: "DeepScope Dashboard" }).getByRole("button", { name: /Close/ }).click();
    await bench.run("DeepScope: Open TensorBoard");
    await bench.profiler().getByText("Overview").first().waitFor(); // the frame is loaded, and stays
    const said = { filename: program, line: hottest.line - 1 }; // counts from 0
    await bench.profiler().locator("body").evaluate((_, message) => window.parent.parent.postMessage(message, "*"), said);
    await bench.atLine(hottest.line + 5);
  });
});

describe("a finding among the problems", () => {
  const own = scratch();
  let bench: Workbench;

  beforeAll(async () => {
    bench = await Workbench.open({ folder: projectWithDevice(join(own.path, "device")), extensions: inject("extensions") });
    await bench.openFile("train.py");
    await bench.traceShown();
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  it("leads to its line after an edit that was not saved", async () => {
    await bench.run("Problems: Focus on Problems View");
    const row = bench.page.locator(".markers-panel .monaco-list-row").filter({ hasText: "Idle device" }).first();
    await row.filter({ hasText: "Ln 12" }).waitFor();
    await bench.showTab("train.py");
    await bench.goToLine(1);
    await bench.page.keyboard.type("# one\n# two\n# three\n");
    await bench.jump(row.filter({ hasText: "Ln 15" }), 15);
  });
});
