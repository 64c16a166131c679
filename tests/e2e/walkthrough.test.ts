import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Workbench } from "./support/workbench";

describe("the walkthrough", () => {
  let bench: Workbench;

  beforeAll(async () => {
    bench = await Workbench.open({ folder: inject("project"), extensions: inject("extensions") });
  });
  afterAll(() => bench.close());

  it("has steps with pictures", async () => {
    await bench.run("Welcome: Open Walkthrough...");
    await bench.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "Get Started with DeepScope" }).click();
    const steps = bench.page.locator(".getting-started-step");
    await steps.nth(4).waitFor();
    const pictures = { "Record a run": "record", "Read the lines": "lines", "Follow the call paths": "flame", "Open the dashboard": "dashboard" };
    for (const [title, name] of Object.entries(pictures)) {
      await steps.filter({ hasText: title }).locator(".step-title").click();
      const picture = bench.page.locator(`.getting-started-media img[srcset*="${name}.png"]`);
      await picture.waitFor();
      await expect.poll(() => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBeGreaterThan(500);
      await bench.screenshot(`walkthrough-${name}`);
    }
  });
});
