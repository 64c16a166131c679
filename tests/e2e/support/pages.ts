/** The dashboard's pages behind `deepscope view`, in a browser. */

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { chromium, type Page } from "playwright-core";
import { inject } from "vitest";
import { PYTHON } from "./surroundings";
import { WAIT_MS } from "./waits";

export interface Pages {
  readonly page: Page;
  /** With its token. */
  readonly url: string;
  /** What the browser's console said, and addresses asked of other origins. */
  readonly said: string[];
  /** Opens a page of the dashboard, `lines?file=…`, and waits until nothing is being read. */
  show(hash: string): Promise<void>;
  close(): Promise<void>;
}

/** Serves traces and opens the first page. */
export async function openPages(paths: readonly string[], viewport = { width: 1400, height: 900 }): Promise<Pages> {
  const server = spawn(PYTHON, ["-m", "deepscope", "view", ...paths, "--no-browser"], { stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(server.stdout).once("line", resolve);
    server.once("exit", (code) => reject(new Error(`deepscope view ended with ${code ?? "a signal"}`)));
  });
  const browser = await chromium.connect(inject("browser"), { timeout: WAIT_MS });
  const context = await browser.newContext({ viewport, reducedMotion: "reduce" });
  const page = await context.newPage();
  const said: string[] = [];
  page.setDefaultTimeout(WAIT_MS);
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin && !request.url().startsWith("data:")) {
      said.push(`asked ${request.url()}`);
    }
  });
  const settled = async (): Promise<void> => {
    await page.locator("main h1").waitFor();
    await page.locator(".waiting").waitFor({ state: "detached" });
  };
  await page.goto(url);
  await settled();
  return {
    page,
    url,
    said,
    show: async (hash) => {
      await page.goto(`${url}#/${hash}`);
      await settled();
    },
    close: async () => {
      await browser.close();
      server.kill("SIGTERM");
    },
  };
}
