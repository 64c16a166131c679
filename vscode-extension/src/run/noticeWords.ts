/** What is said when a new trace is shown. */

import type { HotLine, ShownTrace, Status } from "../server/contract";
import { stepTimeWords } from "../status/words";
import { placeName } from "../views/placeNames";

/** `fit, steps 2–4: step 2.95 → 2.79 s; model.py:42 took 38 % of the device time`. */
export function noticeWords(trace: ShownTrace, status: Pick<Status, "stepTimeWords" | "remarks">, hottest: HotLine | undefined): string {
  const what = [trace.stage, trace.stepsWords].filter((word) => word !== "").join(", ");
  const step = stepTimeWords(status);
  return `${what}: ${step === "" ? "" : `${step}; `}${hottestWords(trace, hottest)}`;
}

function hottestWords(trace: ShownTrace, hottest: HotLine | undefined): string {
  if (hottest === undefined || hottest.share === 0) {
    return "no line of your code took time on the device";
  }
  const time = trace.metric === "device" ? "device time" : "operators' CPU time (no device in this trace)";
  return `${placeName(hottest)} took ${hottest.shareWords} of the ${time}`;
}
