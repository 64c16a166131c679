import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { googleReached, googleSilent, isGooglesHere } from "./support/charts";
import { listening } from "./support/listening";
import { hottestOf, PROGRAM, report, traces } from "./support/recorded";
import { Workbench } from "./support/workbench";

describe("TensorBoard in a panel", () => {
  let bench: Workbench;

  beforeAll(async () => {
    bench = await Workbench.openProgram({ folder: inject("project"), extensions: inject("extensions") });
  });
  afterAll(() => bench.close());

  const showBoard = (): Promise<void> => bench.showTab("TensorBoard");

  /** What torch-tb-profiler's own page says when a frame is clicked. */
  async function say(message: { filename: string; line: unknown }): Promise<void> {
    const profiler = bench.profiler();
    await profiler.locator("body").evaluate((_, said) => window.parent.parent.postMessage(said, "*"), message);
  }

  it("shows torch-tb-profiler's tables and charts without a network", async () => {
    await bench.run("DeepScope: Open TensorBoard");
    const profiler = bench.profiler();
    await profiler.getByRole("columnheader", { name: "Time Duration (us)" }).waitFor();
    await profiler.getByRole("cell", { name: "Average Step Time" }).waitFor();
    for (const chart of [".deepscope-shares", ".u-legend"]) {
      await profiler.locator(chart).filter({ hasText: "CPU Exec" }).first().waitFor();
    }
    await profiler.getByRole("button", { name: "Google Charts could not be loaded" }).waitFor();
    expect(await bench.webview().locator("#place").innerText()).toBe(traces(inject("project")).at(-1)); // the run that is shown
    await bench.screenshot("tensorboard");
  });

  it("opens the executing line where a call frame is clicked", async () => {
    const profiler = bench.profiler();
    await profiler.getByText("Overview").first().click();
    await profiler.getByText("Operator", { exact: true }).last().click();
    await profiler.locator(".deepscope-shares").filter({ hasText: "aten::" }).first().waitFor();
    await profiler.locator("button").first().click(); // folds the drawer, which lies over the table
    // Operators without a stack have it greyed out.
    await profiler.locator("button:enabled").filter({ hasText: "View CallStack" }).first().click();
    await profiler.getByText("View call frames").first().click();
    await bench.screenshot("call-frames");
    const frame = profiler.getByText(new RegExp(`${PROGRAM}\\(\\d+\\)`)).first();
    const words = await frame.innerText();
    const line = Number(/(?:\(|line\s*|:)(\d+)/.exec(words)?.[1]);
    await frame.click();
    await bench.atLine(line);
  });

  it.each([
    ["F1", ">"],
    ["Control+Shift+P", ">"],
    ["Control+P", ""],
  ])("leaves the editor its keys while TensorBoard has the focus: %s", async (keys, asked) => {
    await showBoard();
    for (const inside of [bench.profiler(), bench.tensorboard()]) {
      await inside.locator("body").click({ position: { x: 3, y: 3 } });
      await inside.locator("body").press(keys);
      const input = bench.page.locator(".quick-input-widget input[type=text]");
      await input.waitFor();
      await expect.poll(() => input.inputValue()).toBe(asked);
      await bench.page.keyboard.press("Escape");
      await input.waitFor({ state: "hidden" });
    }
  });

  it("opens the first line of a file, which is line 0 there, and a relative path through the server's mapping", async () => {
    await bench.showTab(PROGRAM);
    await bench.goToLine(3);
    await showBoard();
    await say({ filename: PROGRAM, line: 0 });
    await bench.atLine(1);
  });

  it("opens a file outside the workspace only after asking", async () => {
    await showBoard();
    await say({ filename: "/etc/hostname", line: 0 });
    const dialog = bench.page.locator(".monaco-dialog-box").filter({ hasText: "outside this workspace" });
    await dialog.waitFor();
    await bench.screenshot("outside");
    await bench.page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await say({ filename: "../../../../../../etc/hostname", line: 0 });
    await bench.notification("was not found here").first().waitFor();
    expect(await bench.page.locator(".tab").filter({ hasText: "hostname" }).count()).toBe(0);
  });

  it("hears TensorBoard alone, and no message of another shape", async () => {
    await bench.showTab(PROGRAM);
    await bench.goToLine(3);
    await showBoard();
    await say({ filename: PROGRAM, line: "9" });
    await say({ filename: PROGRAM, line: -2 });
    // The page itself, and the workbench: behind code-server's proxy it even shares TensorBoard's origin.
    await bench.webview().locator("body").evaluate((_, filename) => window.postMessage({ filename, line: 8 }, "*"), PROGRAM);
    await bench.page.locator("iframe.webview.ready:visible").evaluate((frame, filename) => {
      (frame as HTMLIFrameElement).contentWindow?.frames[0]?.postMessage({ filename, line: 8 }, "*");
    }, PROGRAM);
    // What TensorBoard says after them is the first that is heard.
    await say({ filename: PROGRAM, line: 20 });
    await bench.atLine(21);
    const heard = bench.editor.extensionLog().match(/TensorBoard: .*:\d+/g) ?? [];
    expect(heard.filter((line) => line.endsWith(":9"))).toEqual([]);
  });

  it("opens in the browser, at an address that the browser can reach", async () => {
    await showBoard();
    const opened = bench.page.context().waitForEvent("page");
    await bench.webview().getByRole("button", { name: "Open in Browser" }).click();
    const page = await opened;
    await page.getByText("TensorBoard").first().waitFor();
    expect(new URL(page.url()).hostname).toMatch(/^(localhost|127\.0\.0\.1)$/);
    await page.close();
  });

  it("leaves the drawing to Google where the network has its charts, and draws where nobody answers", async () => {
    await showBoard();
    const address = await bench.webview().locator("#board").getAttribute("src");
    const context = bench.page.context();
    for (const [network, isGoogles] of [[googleReached, true], [googleSilent, false]] as const) {
      const forget = await network(context);
      const page = await context.newPage();
      await page.goto(address ?? "");
      const profiler = page.frameLocator('iframe[src*="name=pytorch_profiler"]');
      await profiler.getByText("Step Time Breakdown").waitFor();
      await expect.poll(() => profiler.locator("body").evaluate(isGooglesHere)).toBe(isGoogles);
      await expect.poll(() => profiler.locator(".deepscope-shares, .uplot").count()).toBe(isGoogles ? 0 : 2);
      await page.close();
      await forget();
    }
  });

  it("has TensorBoard back after it died", async () => {
    const [before] = bench.editor.processes("board.py");
    process.kill(before!, "SIGKILL");
    const others = (): number[] => bench.editor.processes("board.py").filter((pid) => pid !== before);
    await expect.poll(() => others().length).toBe(1);
    // The page from before stands until the new process answers.
    await expect.poll(() => listening(others()[0]!).length).toBeGreaterThan(0);
    await bench.profiler().getByText("Overview").first().waitFor();
  });

  it("has DeepScope's own tab, whose lines open in the editor", async () => {
    await showBoard();
    // In a narrow panel a tab may be covered but for its left end.
    await bench.tensorboard().getByRole("tab", { name: /^deepscope$/i }).click({ position: { x: 8, y: 20 } });
    const hottest = hottestOf(report(traces(inject("project")).at(-1)!));
    const place = bench.tab().locator(".hotlines .place").first();
    await place.waitFor();
    expect(await place.textContent()).toBe(`${PROGRAM}:${hottest.line}`);
    await bench.screenshot("tensorboard-tab");
    await place.click();
    await bench.atLine(hottest.line);
  });

  it("listens on the loopback alone", async () => {
    const [pid] = bench.editor.processes("board.py");
    await expect.poll(() => listening(pid!).length).toBeGreaterThan(0);
    expect(listening(pid!).every((address) => address.startsWith("127.0.0.1:"))).toBe(true);
  });

  it("ends TensorBoard with its panel", async () => {
    expect(bench.editor.processes("board.py").length).toBe(1);
    await bench.page.locator(".tab").filter({ hasText: "TensorBoard" }).getByRole("button", { name: /Close/ }).click();
    await expect.poll(() => bench.editor.processes("board.py").length).toBe(0);
  });
});
