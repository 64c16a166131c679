/** What a person does in the editor and sees there, by the page of a real browser. */

import { join } from "node:path";
import { chromium, type Browser, type FrameLocator, type Locator, type Page } from "playwright-core";
import { inject, TestRunner } from "vitest";
import { Editor, type EditorOptions } from "./editor";
import { PROGRAM } from "./recorded";
import { OUTPUT } from "./surroundings";
import { ATTEMPT_MS, attempts, WAIT_MS } from "./waits";

export interface OpenOptions extends EditorOptions {
  readonly viewport?: { readonly width: number; readonly height: number };
}

export class Workbench {
  /** Those that are open now. */
  static readonly opened = new Set<Workbench>();

  private constructor(
    readonly editor: Editor,
    private readonly browser: Browser,
    readonly page: Page,
  ) {}

  static async open(options: OpenOptions): Promise<Workbench> {
    const editor = await Editor.start(options);
    let browser: Browser | undefined;
    try {
      browser = await chromium.connect(inject("browser"), { timeout: WAIT_MS });
      return await Workbench.openIn(browser, editor, options.viewport);
    } catch (error) {
      for (const bench of Workbench.opened) {
        await bench.pictureOfFailure("to open");
      }
      await browser?.close();
      editor.end();
      throw error;
    }
  }

  private static async openIn(browser: Browser, editor: Editor, viewport = { width: 1500, height: 900 }): Promise<Workbench> {
    const context = await browser.newContext({ viewport, reducedMotion: "reduce" });
    context.setDefaultTimeout(WAIT_MS);
    const page = await context.newPage();
    await page.goto(editor.url);
    const bench = new Workbench(editor, browser, page);
    Workbench.opened.add(bench);
    await page.locator(".monaco-workbench .statusbar").waitFor();
    return bench;
  }

  /** The same with the recorded program in front and its trace shown. */
  static async openProgram(options: OpenOptions): Promise<Workbench> {
    const bench = await Workbench.open(options);
    await bench.openFile(PROGRAM);
    await bench.traceShown();
    return bench;
  }

  async close(): Promise<void> {
    Workbench.opened.delete(this);
    const test = TestRunner.getCurrentTest(); // where a test closes its own editor; else support/failures.ts takes the picture
    if (test?.result?.state === "fail") {
      await this.pictureOfFailure(test.name);
    }
    await this.browser.close();
    this.editor.end();
  }

  async pictureOfFailure(test: string): Promise<void> {
    await this.screenshot(`failed-${test.replace(/\W+/g, "-").slice(0, 60)}`).catch(() => undefined);
  }

  async screenshot(name: string): Promise<void> {
    await this.page.screenshot({ path: join(OUTPUT, `${name}.png`) });
  }

  /** Waits until the status item names a trace. */
  async traceShown(): Promise<void> {
    await this.status.filter({ has: this.page.locator(".codicon-flame"), hasNotText: "no trace" }).waitFor();
  }

  get status(): Locator {
    return this.page.locator('[id="deepscope.deepscope.deepscope.status"], .statusbar-item[id*="deepscope.status"]').first();
  }

  /** Opens a file by its name, at a line (from 1). */
  async openFile(name: string, line?: number): Promise<void> {
    await this.quicklyOpen(name);
    await this.page.locator(".tab.active").filter({ hasText: name }).first().waitFor();
    if (line !== undefined) {
      await this.goToLine(line);
    }
  }

  /** Opens a file of any kind by its name. */
  async quicklyOpen(name: string): Promise<void> {
    await this.quickly("Control+P", name, name);
  }

  /** Brings a tab to the front, its editor focused. */
  async showTab(name: string): Promise<void> {
    await this.page.locator(".tab").filter({ hasText: name }).first().click();
  }

  async goToLine(line: number): Promise<void> {
    await attempts(async () => {
      await this.quickly("Control+G", `:${line}`);
      await this.atLine(line, ATTEMPT_MS);
    });
  }

  /** Runs a command of the palette by its title. */
  async run(title: string): Promise<void> {
    await this.quickly("F1", `>${title}`, title);
  }

  /**
   * Opens quick input with a key, types, and takes the row with a text, or the one that is chosen.
   *
   * What comes up elsewhere at that moment may take the focus, which closes quick input: then it is opened again.
   */
  private async quickly(key: string, typed: string, row?: string): Promise<void> {
    const input = this.page.locator(".quick-input-widget:visible .quick-input-box input").first();
    const once = async (): Promise<void> => {
      await this.page.keyboard.press(key);
      await input.fill(typed, { timeout: ATTEMPT_MS });
      const rows = this.page.locator(".quick-input-list .monaco-list-row");
      if (row === undefined) {
        await this.page.keyboard.press("Enter");
      } else {
        await rows.filter({ hasText: row }).first().click({ timeout: ATTEMPT_MS });
      }
    };
    await attempts(once, () => this.page.keyboard.press("Escape"));
  }

  /** Runs a task by the name that the list of tasks has for it, or the list of those of our type. */
  async runTask(name: string): Promise<void> {
    await this.run("Tasks: Run Task");
    const rows = this.page.locator(".quick-input-list .monaco-list-row");
    const task = rows.filter({ hasText: name });
    const ours = rows.filter({ hasText: "deepscope" }).filter({ hasNotText: name });
    await task.or(ours).first().waitFor();
    if ((await task.count()) === 0) {
      await ours.first().click();
    }
    await task.first().click();
  }

  /** Chooses in a picker, once it is there in place of the palette. */
  async pick(title: string, item: string, options: { readonly timeout?: number } = {}): Promise<void> {
    await this.page.locator(".quick-input-title").filter({ hasText: title }).waitFor(options);
    await this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: item }).first().click(options);
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
  }

  /** Runs a command that has a picker, and chooses there; what takes the focus closes it, and it is opened again. */
  async choose(command: string, title: string, item: string): Promise<void> {
    await attempts(
      async () => {
        await this.run(command);
        await this.pick(title, item, { timeout: ATTEMPT_MS });
      },
      () => this.page.keyboard.press("Escape"),
    );
  }

  /** Waits until the cursor stands on a line (from 1). */
  async atLine(line: number, timeout = WAIT_MS): Promise<void> {
    await this.page.locator("#status\\.editor\\.selection").filter({ hasText: new RegExp(`Ln ${line},`) }).waitFor({ timeout });
  }

  /** Clicks what leads to a line (from 1). What was drawn anew between the look and the click is clicked once more. */
  async jump(from: Locator, line: number, ...modifiers: "Control"[]): Promise<void> {
    await from.waitFor();
    await attempts(async () => {
      await from.click({ timeout: ATTEMPT_MS, modifiers });
      await this.atLine(line, ATTEMPT_MS);
    });
  }

  /** The hover on the first word of a line, once it holds a text; the mouse goes away and comes again until it does. */
  async hover(code: string, text: string): Promise<Locator> {
    const hover = this.page.locator(".monaco-hover:visible").filter({ hasText: text }).first();
    const word = this.codeLine(code).locator("span > span").filter({ hasText: /^\w+/.exec(code)?.[0] ?? code }).first();
    await attempts(
      async () => {
        await word.hover({ timeout: ATTEMPT_MS });
        await hover.waitFor({ timeout: ATTEMPT_MS });
      },
      () => this.page.mouse.move(0, 0),
    );
    return hover;
  }

  /** Has the editor show the hover at its cursor, until something is in it. */
  async showHover(inside: Locator): Promise<void> {
    await attempts(async () => {
      await this.run("Show or Focus Hover");
      await inside.waitFor({ timeout: ATTEMPT_MS });
    });
  }

  /** Closes hovers, so that the next one is a new one. */
  async closeHover(): Promise<void> {
    await this.page.mouse.move(0, 0);
    await this.page.keyboard.press("Escape");
    await this.page.locator(".monaco-hover:visible").first().waitFor({ state: "hidden" });
  }

  /** The line of the text editor whose code contains a text. */
  codeLine(code: string): Locator {
    // Monaco writes blanks as no-break spaces.
    const pattern = escaped(code).replaceAll(" ", "[ \\u00a0]");
    return this.page.locator(".editor-instance .view-line").filter({ hasText: new RegExp(pattern) }).first();
  }

  /** The words of the extension's hint on a line; waits until there is one. */
  async hint(code: string, pattern = /\d (?:ns|µs|ms|s) · /): Promise<string> {
    const line = this.codeLine(code).filter({ hasText: new RegExp(pattern.source.replaceAll(" ", "[ \\u00a0]")) });
    await line.waitFor();
    const text = (await line.innerText()).replaceAll("\u00a0", " ");
    return text.slice(text.indexOf(code) + code.length).trim();
  }

  async showDeepScope(): Promise<void> {
    // The label stands within the item, in older editors (1.96) at it.
    const label = '[aria-label*="DeepScope"]';
    await this.page.locator(`.activitybar .action-item:is(${label}, :has(${label}))`).first().click();
    await this.page.locator(".pane-header").filter({ hasText: "Hot Lines" }).waitFor();
  }

  /** Chooses in the context menu of a row. */
  async chooseFromMenu(row: Locator, name: string): Promise<void> {
    const item = this.page.getByRole("menuitem", { name, exact: true });
    await row.waitFor();
    await attempts(async () => {
      await row.click({ button: "right", timeout: ATTEMPT_MS });
      await item.waitFor({ timeout: ATTEMPT_MS });
    });
    // A menu that has just opened takes no click: the one that opened it might have slipped.
    for (let left = 20; left > 0 && (await item.isVisible()); left -= 1) {
      await item.click({ timeout: ATTEMPT_MS }).catch(() => undefined);
      await item.waitFor({ state: "hidden", timeout: 500 }).catch(() => undefined);
    }
    await item.waitFor({ state: "hidden" });
  }

  /** The rows of a view in the side bar. */
  rows(view: string): Locator {
    return this.page.locator(".pane").filter({ has: this.page.locator(".pane-header", { hasText: view }) }).locator(".monaco-list-row");
  }

  /** Messages at the edge of the window. Each goes away by itself after some seconds. */
  notification(text: string | RegExp): Locator {
    return this.page.locator(".notification-toast").filter({ hasText: text });
  }

  /** Waits for a message, and keeps it by the mouse: while that is on it, it does not go away. */
  async told(text: string | RegExp, timeout = WAIT_MS): Promise<Locator> {
    const message = this.notification(text).first();
    await message.waitFor({ timeout });
    await message.locator(".notification-list-item-message").hover();
    return message;
  }

  /** TensorBoard's page in its panel. */
  tensorboard(): FrameLocator {
    return this.webview().frameLocator("#board");
  }

  /** The page of torch-tb-profiler in it. */
  profiler(): FrameLocator {
    return this.tensorboard().frameLocator('iframe[src*="name=pytorch_profiler"]');
  }

  /** DeepScope's own tab in it. */
  tab(): FrameLocator {
    return this.tensorboard().frameLocator('iframe[src*="name=deepscope"]');
  }

  /** The page inside the webview of the active editor tab. */
  webview(): FrameLocator {
    return this.page.frameLocator("iframe.webview.ready:visible").frameLocator("#active-frame");
  }
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
