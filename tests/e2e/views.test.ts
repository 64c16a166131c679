import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { busiestOf, copyProject, hottestOf, placeInRow, PROGRAM, record, report, scratch, TRACES, traces, type Report } from "./support/recorded";
import { durationNs } from "./support/units";
import { RECORDING_MS } from "./support/waits";
import { Workbench } from "./support/workbench";

const DASHBOARD = "DeepScope Dashboard";

describe("the views", () => {
  const own = scratch();
  const project = join(own.path, "views");
  let bench: Workbench;
  let recorded: Report;

  beforeAll(async () => {
    copyProject(inject("project"), project);
    recorded = report(join(project, TRACES));
    // So high that all rows of a view are drawn.
    bench = await Workbench.openProgram({ folder: project, extensions: inject("extensions"), viewport: { width: 1500, height: 1500 } });
    await bench.showDeepScope();
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  const recordedText = (line: number): string => readFileSync(join(project, PROGRAM), "utf8").split("\n")[line - 1]!.trim();

  it("list the hottest line first, and a click opens it", async () => {
    const hottest = hottestOf(recorded);
    const first = bench.rows("Hot Lines").first();
    await first.filter({ hasText: placeInRow(hottest.line) }).waitFor();
    expect(await first.innerText()).toMatch(/^\d+ % · [\d.]+ (µs|ms|s)\s*train_transformer\.py:\d+\s+\S/);
    expect(await first.innerText()).toContain(recordedText(hottest.line).slice(0, 8));
    await bench.screenshot("hot-lines");
    await bench.jump(first, hottest.line);
  });

  it("show who calls the chosen line", async () => {
    const hottest = hottestOf(recorded);
    const rows = bench.rows("Call Paths");
    await rows.filter({ hasText: "Called from" }).waitFor();
    expect(await rows.count()).toBeGreaterThan(1);
    expect(hottest.function).not.toBe("");
  });

  it("go on below the line, down to the depth that is chosen", async () => {
    const rows = bench.rows("Call Paths");
    const head = recorded.lines.find((line) => line.function === "CharTransformer.forward")!;
    await bench.showTab(PROGRAM);
    await bench.goToLine(head.line);
    const module = rows.filter({ hasText: /^head/ }).first();
    const operator = rows.filter({ hasText: /^aten::linear/ }).first();
    // The list draws what is in view; the rows above may be more than that.
    const scrollTo = async (row: typeof module): Promise<void> => {
      await expect.poll(async () => (await row.count()) > 0 || (await bench.page.mouse.wheel(0, 44), false)).toBe(true);
    };
    const unfold = async (): Promise<void> => {
      await rows.first().hover();
      await scrollTo(module);
      await module.hover();
      await module.locator(".monaco-tl-twistie").click();
      await scrollTo(operator);
    };
    await unfold(); // less than the blocks cost, which are unfolded already
    expect(await operator.innerText()).toMatch(/^aten::linear\s*[\d.]+\s(µs|ms|s)$/);
    await module.hover();
    const told = /module\shead\s—\s.*linear\.py:.*\sper\sstep:\sbackward\s[\d.]+\s\S+,\s1\scall/;
    await bench.page.locator(".monaco-hover:visible").filter({ hasText: told }).waitFor();
    await bench.screenshot("call-paths");

    const called = rows.filter({ hasText: /^Block\.forward/ }).first();
    for (const [depth, isModule, isOperator] of [["Kernels", true, true], ["Modules", true, false], ["Lines", false, false]] as const) {
      await bench.choose("DeepScope: Choose Depth of Call Paths", "Show call paths down to", depth);
      await module.waitFor({ state: isModule ? "visible" : "hidden" });
      await operator.waitFor({ state: isOperator ? "visible" : "hidden" });
      await called.waitFor();
    }
    await bench.choose("DeepScope: Choose Depth of Call Paths", "Show call paths down to", "Operators");
    await unfold();
  });

  it("open the class of a module by a click, outside the workspace after asking, and stay as they are", async () => {
    const rows = bench.rows("Call Paths");
    const module = rows.filter({ hasText: /^head/ }).first();
    await module.click();
    const dialog = bench.page.locator(".monaco-dialog-box").filter({ hasText: "linear.py" });
    await dialog.filter({ hasText: "outside this workspace" }).waitFor();
    await dialog.getByRole("button", { name: "Open" }).click();
    await bench.page.locator(".tab.active").filter({ hasText: "linear.py" }).first().waitFor();
    await bench.codeLine("def forward(self, input: Tensor) -> Tensor:").waitFor();
    await bench.goToLine(1); // the view follows the cursor after a moment: it has before the second move ends
    await bench.goToLine(2);
    await module.waitFor();
    await bench.screenshot("call-paths-module");
    // An operator has no place of its own: a click goes to the line whose work it is.
    const head = recorded.lines.find((line) => line.function === "CharTransformer.forward")!;
    await bench.jump(rows.filter({ hasText: "aten::linear" }).first(), head.line);
    await bench.page.locator(".tab.active").filter({ hasText: PROGRAM }).first().waitFor();
  });

  const marked = 'g.frame rect[fill="#c586ff"]';
  /** The time of all boxes together. */
  const wholeNs = async (): Promise<number> => durationNs((await bench.webview().locator('g.frame[name="all"] title').textContent()) ?? "");

  it("draw a flame graph whose boxes lead to the code, and a line is found in it", async () => {
    await bench.run("DeepScope: Show in Flame Graph");
    const graph = bench.webview();
    await graph.locator(marked).first().waitFor();
    const busiest = busiestOf(recorded);
    await graph.getByRole("button", { name: "Reset" }).click();
    const box = graph.locator(`g.frame[name*="${PROGRAM}:${busiest.line}"]`).first();
    await bench.jump(box, busiest.line, "Control");
    await bench.goToLine(1);
    await box.click();
    await bench.jump(graph.locator(".flamebox").getByRole("button", { name: "Open" }), busiest.line);

    // Zoomed to the hottest line, whose boxes hold none of the other function: the search is of the whole all the same.
    const details = graph.locator(".flamedetails");
    const search = graph.locator(".flametools .search");
    await search.fill("attend");
    await details.filter({ hasText: /^\d+ boxes, [\d.]+ \S+, [1-9][\d.]* %$/ }).waitFor();
    const found = await details.innerText();
    await graph.getByRole("button", { name: "Reset" }).click();
    await expect.poll(() => graph.locator(marked).count()).toBe(0);
    await search.fill("attend");
    await expect.poll(() => details.innerText()).toBe(found);
  });

  it("mark all boxes of a line in the flame graph, and stay at the line", async () => {
    const graph = bench.webview();
    const second = recorded.lines.find((line) => line.function === "Block.attend" && line.self_device_ns > 0)!;
    await bench.showTab(PROGRAM);
    await bench.goToLine(second.line);
    await bench.run("DeepScope: Show in Flame Graph");
    const details = graph.locator(".flamedetails").filter({ hasText: new RegExp(`${PROGRAM}:${second.line} · (\\d+) box`) });
    await details.waitFor();
    // Work forward stands below the step, its backward pass below what ran it.
    const count = Number(/· (\d+) box/.exec(await details.innerText())?.[1]);
    await expect.poll(() => graph.locator(marked).count()).toBe(count);
    const share = Number(/([\d.]+) %/.exec(await details.innerText())?.[1]);
    expect(share).toBeCloseTo((100 * second.total_device_ns) / recorded.totals.device_ns, -0.5);
    await bench.atLine(second.line);
    await bench.screenshot("flame-marks");
  });

  it("draw the graph for another metric", async () => {
    const graph = bench.webview();
    const before = recorded.totals.device_ns;
    await graph.getByRole("button", { name: "CPU of lines" }).click();
    await expect.poll(async () => Math.abs((await wholeNs()) - before) / before).toBeGreaterThan(0.01);
    await graph.locator("g.frame").nth(2).waitFor();
    expect(await graph.getByLabel("Down to").isDisabled()).toBe(true);
    await graph.getByRole("button", { name: "Operators", exact: true }).click();
    await expect.poll(async () => Math.abs((await wholeNs()) - before) / before).toBeLessThan(0.01);
    await graph.getByRole("button", { name: "Reset" }).click();
    // The boxes grow to their width.
    const whole = graph.locator("g.frame rect").first();
    await expect.poll(async () => (await whole.boundingBox())?.width ?? 0).toBeGreaterThan(300);
    await graph.locator("g.frame div.d3-flame-graph-label").filter({ hasText: "forward" }).first().waitFor();
    await bench.screenshot("flame");
  });

  it("draw the graph down to the depth that is chosen, which is kept, and a part leads to its line", async () => {
    const graph = bench.webview();
    const head = recorded.lines.find((line) => line.function === "CharTransformer.forward")!;
    const line = graph.locator(`g.frame[name*="${PROGRAM}:${head.line}"]`).first();
    const module = graph.locator('g.frame[name="head"]').first();
    const operator = graph.locator('g.frame[name="aten::linear"]').first();
    for (const [depth, isModule, isOperator] of [["line", false, false], ["module", true, false], ["operator", true, true]] as const) {
      await graph.getByLabel("Down to").selectOption(depth);
      await module.waitFor({ state: isModule ? "attached" : "detached" });
      await operator.waitFor({ state: isOperator ? "attached" : "detached" });
      await line.waitFor();
      const legend = await graph.locator(".legend li").allInnerTexts();
      expect(["line", "module", "operator"].map((kind) => legend.includes(kind))).toEqual([isModule, isModule, isOperator]);
    }
    await bench.screenshot("flame-operators");
    await bench.jump(graph.locator('g.frame[name="head"] ~ g.frame[name="aten::linear"]').first(), head.line, "Control");
    await bench.page.locator(".tab").filter({ hasText: DASHBOARD }).getByRole("button", { name: /Close/ }).click();
    await bench.run("DeepScope: Show in Flame Graph");
    await line.waitFor();
    expect(await graph.getByLabel("Down to").inputValue()).toBe("operator");
  });

  it("group lines by function, file and module", async () => {
    for (const [choice, row] of [["Functions", "Block.forward"], ["Files", PROGRAM], ["Modules of the model", /Linear|blocks|head/]] as const) {
      await bench.choose("DeepScope: Group By", "Group hot lines by", choice);
      await bench.rows("Hot Lines").filter({ hasText: row }).first().waitFor();
    }
    await bench.screenshot("modules");
    await bench.choose("DeepScope: Group By", "Group hot lines by", "Lines");
    await bench.rows("Hot Lines").filter({ hasText: placeInRow(hottestOf(recorded).line) }).first().waitFor();
  });

  it("sort lines by another number, and hide what is not wanted", async () => {
    await bench.choose("DeepScope: Sort By", "Sort hot lines by", "CPU time");
    const busiest = recorded.lines.reduce((best, line) => (line.self_cpu_ns > best.self_cpu_ns ? line : best));
    const first = bench.rows("Hot Lines").first();
    await first.filter({ hasText: placeInRow(busiest.line) }).waitFor();
    await bench.chooseFromMenu(first, "Hide");
    await first.filter({ hasNotText: placeInRow(busiest.line) }).waitFor();
    await bench.run("DeepScope: Show Hidden Lines and Findings");
    await first.filter({ hasText: placeInRow(busiest.line) }).waitFor();
    await bench.choose("DeepScope: Sort By", "Sort hot lines by", "Cost");
    await first.filter({ hasText: placeInRow(hottestOf(recorded).line) }).waitFor();
  });

  it("tell of a new trace, and show its numbers", async () => {
    const recording = record(project, 8);
    const notice = await bench.told(/fit, .*steps?.*: step [\d.]+( m?s)? → [\d.]+ m?s.*\..*train_transformer\.py:\d+/, RECORDING_MS);
    // Beside the run before, of the same program.
    await bench.status.filter({ hasText: /DeepScope [\d.]+( m?s)? → [\d.]+ m?s/ }).waitFor();
    await bench.page.locator(".pane-header").filter({ hasText: "Hot Lines" }).filter({ hasText: /step [\d.]+( m?s)? → [\d.]+ m?s/ }).waitFor();
    await bench.screenshot("notice");
    await notice.getByRole("button", { name: "Show" }).click();
    await recording;
    const hottest = hottestOf(report(join(project, TRACES)));
    await bench.codeLine(recordedText(hottest.line)).waitFor();
    await bench.showTab(PROGRAM); // a message that closes gives the focus back to the panel, which had it
    await bench.atLine(hottest.line);
    await bench.rows("Runs").filter({ hasText: "fit" }).nth(1).waitFor();
  });

  it("compare with an older trace", async () => {
    const older = bench.rows("Runs").filter({ hasText: "fit" }).nth(1);
    await older.hover();
    await older.getByRole("button", { name: /Toggle Baseline/ }).click();
    await bench.rows("Runs").filter({ hasText: "baseline" }).waitFor();
    const hottest = hottestOf(report(join(project, TRACES)));
    await bench.showTab(PROGRAM);
    await bench.goToLine(hottest.line);
    // Both are runs of the same code: what differs is noise, unless other programs had the cores.
    const code = readFileSync(join(project, PROGRAM), "utf8").split("\n")[hottest.line - 1]!.trim();
    const hover = await bench.hover(code, "baseline");
    expect(await hover.innerText()).toMatch(/within noise|[+-][\d.]+\s[nµm]?s\s\([+-][\d.]+\s%\)/);
    await bench.screenshot("baseline");
  });

  it("delete a trace, after asking", async () => {
    const older = bench.rows("Runs").filter({ hasText: "fit" }).nth(1);
    await bench.chooseFromMenu(older, "Delete Trace…");
    const dialog = bench.page.locator(".monaco-dialog-box").filter({ hasText: "Delete the trace" });
    await dialog.waitFor();
    expect(traces(project).length).toBe(2);
    const accounts = (): number => readdirSync(join(project, TRACES)).filter((name) => name.endsWith(".deepscope-run")).length;
    expect(accounts()).toBe(2);
    await dialog.getByRole("button", { name: "Delete" }).click();
    await expect.poll(() => traces(project).length).toBe(1);
    await expect.poll(accounts).toBe(1);
    await expect.poll(() => bench.rows("Runs").filter({ hasText: "fit" }).count()).toBe(1);
  });
});
