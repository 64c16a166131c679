/** Where a ruler has its marks, and times in words that stay exact to the nanosecond. */

import type { View } from "./view";

export interface Tick {
  readonly ns: number;
  readonly label: string;
}

const UNITS = [
  [1e9, "s", 9],
  [1e6, "ms", 6],
  [1e3, "µs", 3],
  [1, "ns", 0],
] as const;

/** Marks at round times, about `apart` pixels from each other. */
export function ticks(view: View, width: number, apart = 110): readonly Tick[] {
  const step = roundStep(((view.end - view.begin) / Math.max(width, 1)) * apart);
  const first = Math.ceil(view.begin / step) * step;
  const count = Math.max(Math.floor((view.end - first) / step) + 1, 0);
  return Array.from({ length: count }, (_, index) => {
    const ns = Math.round(first + index * step);
    return { ns, label: tickLabel(ns, step) };
  });
}

/** The least of 1, 2, 5, 10, 20, … nanoseconds that is no less. */
export function roundStep(ns: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(ns, 1)));
  return ([1, 2, 5].find((digit) => digit * power >= ns * (1 - 1e-12)) ?? 10) * power;
}

/** A time with just the digits that tell it from its neighbours: `1.203 s` between `1.202 s` and `1.204 s`. */
export function tickLabel(ns: number, step: number): string {
  if (ns === 0) {
    return "0";
  }
  const [size, unit, most] = UNITS.find(([one]) => Math.abs(ns) >= one) ?? UNITS[3];
  const digits = Math.min(Math.max(Math.ceil(Math.log10(size / step) - 1e-9), 0), most);
  return `${fixed(ns, size, digits)} ${unit}`;
}

/** A time with all its digits: `1.203 456 789 s`. */
export function exact(ns: number): string {
  const whole = Math.round(ns);
  const [size, unit, most] = UNITS.find(([one]) => Math.abs(whole) >= one) ?? UNITS[3];
  return `${fixed(whole, size, most)} ${unit}`;
}

/** In integers, for floating point rounds; digits behind the point stand in groups of three. */
function fixed(ns: number, size: number, digits: number): string {
  const [magnitude, sign] = [Math.abs(ns), ns < 0 ? "-" : ""];
  const rest = String(magnitude % size).padStart(String(size).length - 1, "0");
  const shown = size === 1 ? "" : rest.slice(0, digits).replace(/(\d{3})(?=\d)/g, "$1\u2009");
  return `${sign}${Math.floor(magnitude / size)}${shown === "" ? "" : `.${shown}`}`;
}
