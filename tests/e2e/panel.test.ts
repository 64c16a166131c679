import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { FrameLocator, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { listening } from "./support/listening";
import { busiestOf, copyProject, hottestOf, PROGRAM, record, report, scratch, TRACES, traces, type Report } from "./support/recorded";
import { ATTEMPT_MS, attempts } from "./support/waits";
import { Workbench } from "./support/workbench";

const TITLE = "DeepScope Dashboard";

describe("the dashboard in a panel", () => {
  const own = scratch();
  const project = join(own.path, "panel");
  let bench: Workbench;
  let recorded: Report;

  beforeAll(async () => {
    copyProject(inject("project"), project);
    recorded = report(join(project, TRACES));
    bench = await Workbench.openProgram({ folder: project, extensions: inject("extensions") });
  });
  afterAll(async () => {
    await bench.close();
    own.remove();
  });

  const pages = (): FrameLocator => bench.webview();
  const show = (): Promise<void> => bench.showTab(TITLE);
  const hottest = (): Locator => pages().locator(".hotlines .place").first();
  const hottestIn = (page: Page): Locator => page.locator(".hotlines .place").first();
  const hash = async (): Promise<string> => {
    for (const frame of bench.page.frames()) {
      if ((await frame.locator('body[data-door="panel"]').count().catch(() => 0)) > 0) {
        return frame.evaluate(() => window.location.hash);
      }
    }
    return "";
  };
  const servers = (): number[] => bench.editor.processes("--no-browser");

  it("opens at once, with the run's hottest line, and starts no TensorBoard", async () => {
    await bench.run("DeepScope: Open Dashboard");
    await hottest().waitFor();
    expect(await hottest().textContent()).toBe(`${PROGRAM}:${hottestOf(recorded).line}`);
    expect(await pages().locator(".steps .step").count()).toBe(recorded.totals.steps);
    expect(await pages().locator("button.theme").count()).toBe(0);
    expect(bench.editor.processes("board.py")).toEqual([]);
  });

  it.each(["Default Light Modern", "Default High Contrast", "Default High Contrast Light", "Default Dark Modern"])("has the colours of the editor: %s", async (theme) => {
    bench.editor.set({ "workbench.colorTheme": theme });
    const editor = (): Promise<string> =>
      bench.page.locator(".monaco-workbench").evaluate((workbench) => getComputedStyle(workbench).getPropertyValue("--vscode-editor-background").trim());
    const asColour = (colour: string): Promise<string> =>
      bench.page.evaluate((given) => {
        const probe = document.createElement("span");
        probe.style.color = given;
        document.body.append(probe);
        const found = getComputedStyle(probe).color;
        probe.remove();
        return found;
      }, colour);
    const shown = (): Promise<string> => pages().locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);
    await bench.page.locator(theme.includes("Light") ? ".monaco-workbench.vs, .monaco-workbench.hc-light" : ".monaco-workbench.vs-dark, .monaco-workbench.hc-black").waitFor();
    await expect.poll(async () => (await shown()) === (await asColour(await editor()))).toBe(true);
    await bench.screenshot(`panel-${theme.replaceAll(" ", "-").toLowerCase()}`);
  });

  it("goes on by its links, and back and forward by keys", async () => {
    await pages().getByRole("link", { name: "Findings" }).click();
    await pages().getByRole("heading", { name: "Findings", level: 1 }).waitFor();
    await pages().locator("#main").press("Alt+ArrowLeft");
    await hottest().waitFor();
    await pages().locator("#main").press("Alt+ArrowRight");
    await pages().getByRole("heading", { name: "Findings", level: 1 }).waitFor();
    await bench.page.locator(".editor-actions").getByRole("button", { name: "Go Back in Dashboard" }).first().click();
    await hottest().waitFor();
  });

  it("leaves the editor its keys", async () => {
    await pages().locator("#main").press("F1");
    const input = bench.page.locator(".quick-input-widget input[type=text]");
    await input.waitFor();
    await bench.page.keyboard.press("Escape");
    await input.waitFor({ state: "hidden" });
  });

  it("opens a line beside it where it is clicked, and where it stands after an edit", async () => {
    const { line } = hottestOf(recorded);
    await bench.jump(hottest(), line);
    await bench.goToLine(1);
    await bench.page.keyboard.type("# one\n# two\n");
    await show();
    await bench.jump(hottest(), line + 2);
    await bench.run("File: Revert File");
    await show();
  });

  it("is led to a line from the editor", async () => {
    const { line } = hottestOf(recorded);
    await bench.showTab(PROGRAM);
    await bench.goToLine(line);
    await bench.run("DeepScope: Show in Dashboard");
    await expect.poll(hash).toMatch(new RegExp(`^#/lines\\?file=.*${PROGRAM}&line=${line}$`));
    await bench.showTab(PROGRAM);
    await bench.goToLine(line);
    await bench.run("DeepScope: Show in Timeline");
    await expect.poll(hash).toMatch(new RegExp(`^#/timeline\\?.*line=${line}$`));
  });

  it("is led to a line from its hover, and to its boxes in the flame graph", async () => {
    const { line } = busiestOf(recorded);
    const code = readFileSync(join(project, PROGRAM), "utf8").split("\n")[line - 1]!.trim();
    await pages().getByRole("link", { name: "Overview" }).click();
    await bench.showTab(PROGRAM);
    await bench.goToLine(line);
    const hover = await bench.hover(code, "Show in Dashboard");
    await hover.getByText("Show in Dashboard").click();
    await expect.poll(hash).toMatch(new RegExp(`^#/lines\\?.*line=${line}$`));
    await pages().getByRole("link", { name: "Overview" }).click();
    await bench.showTab(PROGRAM);
    await bench.goToLine(line);
    await bench.run("DeepScope: Show in Flame Graph");
    await expect.poll(hash).toMatch(new RegExp(`^#/flame\\?.*line=${line}$`));
    const box = pages().locator(`g.frame[name*=":${line}"]`).first();
    await box.click();
    await pages().locator(".flamebox").getByRole("link", { name: "Line", exact: true }).click();
    await expect.poll(hash).toMatch(new RegExp(`^#/lines\\?.*line=${line}$`));
  });

  it("is where it was after the window was loaded anew", async () => {
    await pages().getByRole("link", { name: "Findings" }).click();
    await pages().getByRole("heading", { name: "Findings", level: 1 }).waitFor();
    const loaded = bench.page.waitForEvent("load");
    await bench.run("Developer: Reload Window");
    await loaded;
    await pages().getByRole("heading", { name: "Findings", level: 1 }).waitFor();
    await expect.poll(hash).toMatch(/^#\/findings/);
    await expect.poll(() => servers().length).toBe(1); // that of the window before is gone
  });

  it("answers again after its server died", async () => {
    const [before] = servers();
    process.kill(before!, "SIGKILL");
    await expect.poll(() => servers().filter((pid) => pid !== before).length).toBe(1);
    await pages().getByRole("link", { name: "Overview" }).click();
    await hottest().waitFor();
  });

  it("listens on the loopback alone, and shows nothing without the token", async () => {
    const [pid] = servers();
    await expect.poll(() => listening(pid!).length).toBeGreaterThan(0);
    const [address] = listening(pid!);
    expect(address).toMatch(/^127\.0\.0\.1:/);
    expect((await fetch(`http://${address!}/api/overview`)).status).toBe(401);
  });

  it("follows a new run, and stays at a run that was chosen", async () => {
    const choice = pages().getByTitle("Run", { exact: true });
    const runs = pages().locator(".runlist a");
    const chosen = async (): Promise<string> => {
      await choice.click();
      const listed = await runs.evaluateAll((links) => `${links.findIndex((link) => link.hasAttribute("aria-current")) + 1} of ${links.length}`);
      await choice.click();
      return listed;
    };
    await record(project, 6);
    await expect.poll(chosen).toBe("1 of 2");
    expect(await hottest().textContent()).toBe(`${PROGRAM}:${hottestOf(report(traces(project).at(-1)!)).line}`);
    await choice.click();
    await runs.nth(1).click();
    await expect.poll(hash).toContain("run=");
    await record(project, 6);
    await pages().getByText("The editor shows another run now.").waitFor();
    await bench.screenshot("panel-newer");
    await expect.poll(chosen).toBe("3 of 3");
    await pages().getByRole("button", { name: "Show it" }).click();
    await expect.poll(chosen).toBe("1 of 3");
    expect(await hash()).not.toContain("run=");
  });

  it("ends its server with the panel", async () => {
    await attempts(async () => {
      await bench.page.locator(".tab").filter({ hasText: TITLE }).getByRole("button", { name: /Close/ }).click({ timeout: ATTEMPT_MS });
    });
    await expect.poll(() => servers().length).toBe(0);
  });

  it("opens in the browser, where the server outlives the panel", async () => {
    await bench.run("DeepScope: Open Dashboard");
    await hottest().waitFor();
    const opened = bench.page.context().waitForEvent("page");
    await bench.run("DeepScope: Open Dashboard in Browser");
    const page = await opened;
    await hottestIn(page).waitFor();
    await bench.page.locator(".tab").filter({ hasText: TITLE }).getByRole("button", { name: /Close/ }).click();
    await page.locator(".steps .step").first().click(); // what it asks now, it asks that server
    await page.locator(".steps").waitFor({ state: "detached" });
    await hottestIn(page).waitFor();
    await page.close();
  });
});
