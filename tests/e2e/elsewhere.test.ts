import { cpSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { doctor, moveRecorded } from "./support/doctored";
import { copyProject, hottestOf, placeInRow, PROGRAM, report, scratch, TRACES, traces, type Report } from "./support/recorded";
import { Workbench } from "./support/workbench";

/** A program that is not here. */
const OTHER = "other.py";

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
    bench = await Workbench.openProgram({ folder: project, extensions: inject("extensions") });
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
    expect(await bench.hint(code)).toMatch(/^[\d.]+ (?:ms|µs) · \d+ %/);
    await bench.goToLine(1);
    await bench.showDeepScope();
    await bench.jump(bench.rows("Hot Lines").first(), hottest.line);
    await bench.screenshot("elsewhere");
  });

  it("has TensorBoard's frames open the file that is here", async () => {
    await bench.run("DeepScope: Open TensorBoard");
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

describe("a newer trace of code that is not here", () => {
  const own = scratch();
  const project = join(own.path, "here");
  const foreign = join(own.path, "theirs", "other.pt.trace.json.gz");
  let bench: Workbench;
  let recorded: Report;

  beforeAll(async () => {
    copyProject(inject("project"), project);
    mkdirSync(join(own.path, "theirs"));
    cpSync(traces(project)[0]!, foreign);
    moveRecorded(foreign, join(project, PROGRAM), `/home/train/elsewhere/${OTHER}`);
    doctor(foreign, (header) => {
      header.files[0]!.text += "\n# somebody else's\n";
      delete header.files[0]!.sha256;
      Object.assign(header, { run_id: "theirs", program: OTHER, recorded_at: "2100-01-01T00:00:00+00:00" });
    });
    recorded = report(foreign);
    bench = await Workbench.open({ folder: project, extensions: inject("extensions") });
    await bench.traceShown(); // though no Python file is open, and `deepscope_logs` is ignored by git and by searches
    await bench.showDeepScope();
    await bench.rows("Hot Lines").first().waitFor();
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  it("leaves the user's own run, and is shown where the user wants it", async () => {
    const ownRow = bench.rows("Hot Lines").first().filter({ hasText: placeInRow(hottestOf(recorded).line) });
    await ownRow.waitFor();
    renameSync(foreign, join(project, TRACES, "other.pt.trace.json.gz"));
    const offer = await bench.told("is newer, and no code of it is here: your own run stays");
    await bench.screenshot("newer-elsewhere");
    await ownRow.waitFor();
    await offer.getByRole("button", { name: "Show It" }).click();
    await bench.rows("Hot Lines").first().filter({ hasText: `${OTHER}:${hottestOf(recorded).line}` }).waitFor();
    // Its row in the list of runs is the one that is shown now; the user's own is still there.
    await bench.rows("Runs").filter({ hasText: OTHER }).locator(".custom-view-tree-node-item-icon.codicon-check").waitFor();
    await bench.rows("Runs").filter({ hasText: PROGRAM }).first().waitFor();
  });

  it("has dimmed rows, which show the text as it ran and who called it", async () => {
    const hottest = hottestOf(recorded);
    const row = bench.rows("Hot Lines").first();
    await row.filter({ hasText: `${OTHER}:${hottest.line}` }).waitFor();
    const colour = (of: Locator): Promise<string> => of.locator(".label-name").first().evaluate((label) => getComputedStyle(label).color);
    const plain = await colour(bench.rows("Runs").first());
    await expect.poll(() => colour(row)).not.toBe(plain); // VS Code asks for decorations after it has drawn the row
    await row.click();
    const message = await bench.told("was not found here; this is its text as it ran");
    await bench.atLine(hottest.line);
    const text = readFileSync(join(project, PROGRAM), "utf8").split("\n")[hottest.line - 1]!.trim();
    await bench.codeLine(text.slice(0, 20)).waitFor();
    await bench.rows("Call Paths").filter({ hasText: "Called from" }).waitFor();
    await bench.screenshot("not-here");
    await message.getByRole("button", { name: /Clear/ }).click();
    await message.waitFor({ state: "hidden" });
  });

  it("is found in the folder that the user points to, and stays found", async () => {
    mkdirSync(join(project, "deep", "down"), { recursive: true });
    renameSync(join(project, PROGRAM), join(project, "deep", "down", OTHER)); // where nobody looks
    await bench.rows("Hot Lines").first().click();
    await (await bench.told("was not found here")).getByRole("button", { name: "Locate Folder…" }).click();
    const input = bench.page.locator(".quick-input-widget:visible .quick-input-box input").first();
    const whereItBegins = bench.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: TRACES });
    await whereItBegins.waitFor(); // before, the dialog would write its own folder over what is typed
    await input.fill(`${join(project, "deep", "down")}/`);
    // The dialog goes there on its own time; until then it would choose the folder that it began with.
    await whereItBegins.waitFor({ state: "hidden" });
    await bench.screenshot("locating");
    await bench.page.locator(".quick-input-widget:visible").getByRole("button", { name: "Look Here" }).click();
    await bench.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
    await bench.page.locator(`.tab.active[data-resource-name="${OTHER}"]`).first().waitFor();
    await bench.page.locator(".breadcrumbs-control").filter({ hasText: "down" }).first().waitFor();
    const hottest = hottestOf(recorded);
    await bench.atLine(hottest.line);
    await bench.goToLine(1);
    await bench.jump(bench.rows("Hot Lines").first(), hottest.line);
    await bench.screenshot("located");
  });
});
