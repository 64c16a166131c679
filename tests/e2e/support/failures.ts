/** What is done when a test has failed: a picture of each editor at that moment, and no more tests in an editor that may be spoilt. */

import { onTestFailed, beforeEach } from "vitest";
import { IS_AGAIN } from "./surroundings";
import { Workbench } from "./workbench";

beforeEach(({ task, skip }) => {
  // Each test after it would wait to its limit; the file is tried once more as a whole, and then to its end.
  if (!IS_AGAIN && task.suite?.tasks.some((before) => before.result?.state === "fail") === true) {
    skip("a test before it in the same editor has failed");
  }
  onTestFailed(async ({ task }) => {
    for (const bench of Workbench.opened) {
      await bench.pictureOfFailure(task.name);
    }
  });
});
