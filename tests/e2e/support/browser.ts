/** The one browser of a run: each editor has a context of its own in it, which shares nothing with others. */

import { chromium, type BrowserServer } from "playwright-core";
import { CHROMIUM } from "./surroundings";
import { WAIT_MS } from "./waits";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // What works must work without a network.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
];

export function startBrowser(): Promise<BrowserServer> {
  return chromium.launchServer({ executablePath: CHROMIUM, args: FLAGS, timeout: WAIT_MS });
}
