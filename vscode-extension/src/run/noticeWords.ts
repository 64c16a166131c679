/** What is said when a new trace is shown. */

import type { HotLine, ShownTrace, Status } from "../server/contract";
import { stepTimeWords } from "../status/words";
import { placeName } from "../views/placeNames";

/** `fit, steps 2–4: step 2.95 → 2.79 s; model.py:42 takes 38 % of the run's cost`. */
export function noticeWords(trace: ShownTrace, status: Pick<Status, "stepTimeWords" | "remarks">, hottest: HotLine | undefined): string {
  const what = [trace.stage, trace.stepsWords].filter((word) => word !== "").join(", ");
  const step = stepTimeWords(status);
  return `${what}: ${step === "" ? "" : `${step}; `}${hottestWords(hottest)}`;
}

function hottestWords(hottest: HotLine | undefined): string {
  if (hottest === undefined || hottest.share === 0) {
    return "no line of your code took time";
  }
  return `${placeName(hottest)} takes ${hottest.shareWords} of the run's cost`;
}
