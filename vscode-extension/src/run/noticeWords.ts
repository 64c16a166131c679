/** What is said when a new trace is shown. */

import type { HotLine, ShownTrace } from "../server/contract";
import { stepWords } from "../status/words";
import { share } from "../units";

/** `fit, steps 2–4: model.py:42 took 38 % of the device time`. */
export function noticeWords(trace: ShownTrace, hottest: HotLine | undefined): string {
  const what = [trace.stage, stepWords(trace)].filter((word) => word !== "").join(", ");
  if (hottest === undefined || hottest.share === 0) {
    return `${what}: no line of your code took time on the device`;
  }
  const time = trace.metric === "device" ? "device time" : "operators' CPU time (no device in this trace)";
  const name = hottest.shortFile.split(/[/\\]/).at(-1) ?? hottest.shortFile;
  return `${what}: ${name}:${hottest.currentLine ?? hottest.line} took ${share(hottest.share)} of the ${time}`;
}
