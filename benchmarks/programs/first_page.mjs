// A headless Chromium that waits for an address on standard input, opens it, and says when its first page is complete:
// drawn, with nothing still being read. `node first_page.mjs MODULES CHROMIUM`; MODULES has playwright-core.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [modules, executablePath] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
process.stdout.write("ready\n");
for await (const url of createInterface(process.stdin)) {
  await page.goto(url);
  await page.locator("main h1").waitFor({ timeout: 600_000 });
  await page.locator(".waiting").waitFor({ state: "detached", timeout: 600_000 });
  await page.locator("main dl.figures dd").first().waitFor();
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn()))));
  process.stdout.write("complete\n");
}
await browser.close();
