/** A picture of each editor at the moment when a test has failed. */

import { onTestFailed, beforeEach } from "vitest";
import { Workbench } from "./workbench";

beforeEach(() => {
  onTestFailed(async ({ task }) => {
    for (const [index, bench] of [...Workbench.opened].entries()) {
      await bench.screenshot(`failed-${task.name.replace(/\W+/g, "-").slice(0, 60)}-${index}`).catch(() => undefined);
    }
  });
});
