import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { stubCharts } from "./support/charts";
import { moveRecorded } from "./support/doctored";
import { copyProject, hottestOf, PROGRAM, report, scratch, TRACES, traces, type Report } from "./support/recorded";
import { Workbench } from "./support/workbench";

describe("a trace recorded on another machine", () => {
  const own = scratch();
  const project = join(own.path, "here");
  let bench: Workbench;
  let recorded: Report;

  beforeAll(async () => {
    copyProject(inject("project"), project);
    const [trace] = traces(project);
    moveRecorded(trace!, project, "/home/train/elsewhere");
    recorded = report(join(project, TRACES));
    bench = await Workbench.open({ folder: project, extensions: inject("extensions") });
    await bench.openFile(PROGRAM);
    await bench.traceShown();
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  it("shows its numbers on the same text under another path, and its rows open it", async () => {
    const hottest = hottestOf(recorded);
    expect(hottest.file).toBe(`/home/train/elsewhere/${PROGRAM}`);
    const code = readFileSync(join(project, PROGRAM), "utf8").split("\n")[hottest.line - 1]!.trim();
    await bench.goToLine(hottest.line);
    expect(await bench.hint(code)).toMatch(/^CPU [\d.]+ \w+ · \d+ %$/);
    await bench.goToLine(1);
    await bench.showDeepScope();
    await bench.rows("Hot Lines").first().click();
    await bench.atLine(hottest.line);
    await bench.screenshot("elsewhere");
  });

  it("has the dashboard's frames open the file that is here", async () => {
    await stubCharts(bench.page);
    await bench.run("DeepScope: Open Dashboard");
    const profiler = bench.profiler();
    await profiler.getByText("Overview").first().waitFor();
    const line = hottestOf(recorded).line;
    await profiler.locator("body").evaluate((_, said) => window.parent.parent.postMessage(said, "*"), {
      filename: `/home/train/elsewhere/${PROGRAM}`,
      line: line - 1,
    });
    await bench.atLine(line);
    await bench.page.locator(".tab.active").filter({ hasText: PROGRAM }).waitFor();
  });
});
