/** What a shown time stands for: as the server's, the mean of a step and a rank. */

import type { ShownTrace } from "../server/contract";

export interface Scale {
  /** Sums over the trace are divided by this. */
  readonly divisor: number;
  /** `per step`, or `in the trace` where it has no steps. */
  readonly words: string;
}

/** `ranks`: how many the sums are of, where they are not of all. */
export function scaleOf(trace: ShownTrace | undefined, ranks = trace?.ranks.length ?? 1): Scale {
  const steps = trace === undefined ? 0 : trace.step === null ? trace.steps : 1;
  return { divisor: Math.max(1, steps) * Math.max(1, ranks), words: steps > 0 ? "per step" : "in the trace" };
}
