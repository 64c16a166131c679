import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { hottestOf, PROGRAM, report, scratch, TRACES, type Report } from "./support/recorded";
import { Workbench } from "./support/workbench";

interface Answer {
  readonly lines: readonly { readonly place: string; readonly standing: string; readonly cost: string; readonly ran: string }[];
}

describe("an assistant in the editor", () => {
  const own = scratch();
  const file = join(own.path, "answer.json");
  let bench: Workbench;
  let recorded: Report;

  beforeAll(async () => {
    const project = inject("project");
    recorded = report(join(project, TRACES));
    bench = await Workbench.openProgram({
      folder: project,
      extensions: inject("extensionsWithPython"),
      settings: { "chat.disableAIFeatures": false },
      env: { ASSISTANT_ANSWER: file },
    });
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  const answer = async (): Promise<Answer> => {
    rmSync(file, { force: true });
    await bench.run("Assistant: Use the Tool");
    await expect.poll(() => existsSync(file)).toBe(true);
    return JSON.parse(readFileSync(file, "utf8")) as Answer;
  };

  it("is told the open file's numbers at the lines as they are edited now", async () => {
    const { line } = hottestOf(recorded);
    await bench.goToLine(line);
    expect((await answer()).lines[0]).toMatchObject({ place: `${PROGRAM}:${line}`, standing: "same" });
    await bench.goToLine(2);
    await bench.page.keyboard.type("# one\n# two\n");
    await expect.poll(async () => (await answer()).lines[0]?.place).toBe(`${PROGRAM}:${line + 2}`);
    await bench.run("File: Revert File");
    await expect.poll(async () => (await answer()).lines[0]?.place).toBe(`${PROGRAM}:${line}`);
  });

  it("is asked about a line by a link in its hover; the user sends the question", async () => {
    const hottest = hottestOf(recorded);
    const code = readFileSync(join(inject("project"), PROGRAM), "utf8").split("\n")[hottest.line - 1]!.trim();
    await bench.goToLine(hottest.line);
    const hover = await bench.hover(code, "of the run's cost");
    await hover.getByText("Ask", { exact: true }).click();
    const input = bench.page.locator(".interactive-session .interactive-input-editor .view-lines").filter({ hasText: `${PROGRAM}:${hottest.line}` });
    await input.waitFor();
    await bench.screenshot("assistant");
    expect((await input.innerText()).replace(/\s+/g, " ")).toMatch(/^Why does \S+:\d+ cost/);
  });

  it("has the skill that the extension brings", async () => {
    await bench.goToLine(1);
    await bench.run("Chat: Configure Skills...");
    const row = bench.page.locator(".quick-input-widget:visible .monaco-list-row").filter({ hasText: "deepscope" });
    await row.waitFor();
    expect(await row.innerText()).toContain("Finds which line of a PyTorch or Lightning training costs the time");
    await bench.page.keyboard.press("Escape");
  });
});
