import { defineConfig } from "vitest/config";
import { WAIT_MS } from "./support/waits.ts";

/** What runs without `--all`: the lines, every view, jumps after edits, the dashboard's panel, and a run from the editor. */
const ALWAYS = ["inline.test.ts", "views.test.ts", "jumps.test.ts", "panel.test.ts", "run.test.ts"];

/** Those that are named are tried once more, alone: scripts/test-extension. */
const named = process.env["DEEPSCOPE_E2E_FILES"]?.split(" ");

export default defineConfig({
  test: {
    include: named ?? (process.env["DEEPSCOPE_E2E_ALL"] === undefined ? ALWAYS : ["*.test.ts"]),
    globalSetup: ["./support/prepare.ts"],
    setupFiles: ["./support/failures.ts"],
    // An editor is a server, a page and a Python process or two, and waits as much as it works.
    maxWorkers: 2,
    // Each wait has its own, shorter limit and names what it waits for.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: WAIT_MS, interval: 100 } },
  },
});
