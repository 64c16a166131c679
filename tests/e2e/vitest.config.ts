import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["*.test.ts"],
    globalSetup: ["./support/prepare.ts"],
    setupFiles: ["./support/failures.ts"],
    // One editor at a time: each is a server, a browser and a Python process or two.
    fileParallelism: false,
    // Each wait has its own, shorter limit and names what it waits for.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 90_000, interval: 100 } },
    retry: 1,
  },
});
