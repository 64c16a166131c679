/** How strongly a value is marked, and how the parts of a line's cost stand beside each other. */

import type { Column } from "../contract";

/** From 0 to 1; small values are still seen beside the largest. */
export function heat(value: number, largest: number): number {
  return largest > 0 && value > 0 ? Math.sqrt(Math.min(1, value / largest)) : 0;
}

export interface Bars {
  readonly forward: number;
  readonly backward: number;
  /** The rest of the cost: the device idle; where the CPU is the device, Python. */
  readonly rest: number;
}

/** The parts of a line's cost, as shares of the largest cost of a line. */
export function barsOf(values: readonly number[], columns: readonly Column[], largest: readonly number[]): Bars {
  const at = (key: string): number => values[columns.findIndex((column) => column.key === key)] ?? 0;
  const whole = largest[0] ?? 0;
  const part = (value: number): number => (whole > 0 ? Math.max(0, Math.min(1, value / whole)) : 0);
  return { forward: part(at("self") - at("backward")), backward: part(at("backward")), rest: part(at("cost") - at("self")) };
}
