/** Which steps a value of a counter's chart is of. */

import type { CounterChart } from "../contract";
import { placeOf } from "../parts/chartScale";

/** `step 4`, or the block of steps that a moment lies in: `steps 8–15`. Behind the last block it is the last one. */
export function stepsWords({ steps, end }: Pick<CounterChart, "steps" | "end">, at: number): string {
  const length = end - (steps.at(-1) ?? 0);
  const first = steps[placeOf(steps, at)] ?? 0;
  return length > 1 ? `steps ${first}–${first + length - 1}` : `step ${first}`;
}
