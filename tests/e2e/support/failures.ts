/** A picture of each editor at the moment when a test has failed. */

import { onTestFailed, beforeEach } from "vitest";
import { Workbench } from "./workbench";

beforeEach(() => {
  onTestFailed(async ({ task }) => {
    for (const bench of Workbench.opened) {
      await bench.pictureOfFailure(task.name);
    }
  });
});
