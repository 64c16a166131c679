/** What is said when a new trace is shown. */

import type { ShownTrace, Status } from "../server/contract";
import { stepTimeWords } from "../status/words";

/** `fit, steps 2–4: step 2.95 → 2.79 s. Waits for data: 41 % of each step, from data.py:46.` */
export function noticeWords(trace: ShownTrace, status: Pick<Status, "stepTimeWords" | "remarks">): string {
  const what = [trace.stage, trace.stepsWords].filter((word) => word !== "").join(", ");
  const step = stepTimeWords(status);
  return `${what}${step === "" ? "" : `: ${step}`}. ${trace.verdict}`;
}
