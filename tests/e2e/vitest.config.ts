import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["*.test.ts"],
    globalSetup: ["./support/prepare.ts"],
    setupFiles: ["./support/failures.ts"],
    // An editor is a server, a page and a Python process or two, and waits as much as it works.
    maxWorkers: 2,
    // Each wait has its own, shorter limit and names what it waits for.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 90_000, interval: 100 } },
    retry: 1,
  },
});
