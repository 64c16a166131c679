/** The ruler above the tracks: round times, exact to the nanosecond, the pointer's time, the marked stretch. */

import { toX, type View } from "./view";
import { duration } from "../words";
import type { Palette } from "./palette";
import type { Marks } from "./scene";

interface Tick {
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

export const RULER = 24;

export function drawRuler(context: CanvasRenderingContext2D, palette: Palette, view: View, width: number, ratio: number, marks: Marks): void {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = palette.background;
  context.fillRect(0, 0, width, RULER);
  context.font = `11px ${palette.font}`;
  context.textBaseline = "middle";
  if (marks.stretch !== undefined) {
    const [from, to] = [toX(marks.stretch.begin, view, width), toX(marks.stretch.end, view, width)];
    context.fillStyle = palette.accentSoft;
    context.fillRect(from, 0, to - from, RULER);
  }
  for (const { ns, label } of ticks(view, width)) {
    const x = Math.round(toX(ns, view, width));
    context.fillStyle = palette.strong;
    context.fillRect(x, RULER - 7, 1, 7);
    context.fillStyle = palette.muted;
    if (x + 4 + context.measureText(label).width < width) {
      context.fillText(label, x + 4, RULER / 2);
    }
  }
  if (marks.stretch !== undefined) {
    const middle = toX((marks.stretch.begin + marks.stretch.end) / 2, view, width);
    flag(context, palette, duration(marks.stretch.end - marks.stretch.begin), middle, width, palette.accentSoft);
  }
  if (marks.pointer !== undefined) {
    flag(context, palette, exact(marks.pointer), toX(marks.pointer, view, width), width, palette.surface);
  }
}

function flag(context: CanvasRenderingContext2D, palette: Palette, words: string, x: number, width: number, fill: string): void {
  const wide = context.measureText(words).width + 12;
  const left = Math.min(Math.max(x - wide / 2, 0), width - wide);
  context.fillStyle = fill;
  context.fillRect(left, 2, wide, RULER - 4);
  context.strokeStyle = palette.strong;
  context.lineWidth = 1;
  context.strokeRect(Math.round(left) + 0.5, 2.5, Math.round(wide) - 1, RULER - 5);
  context.fillStyle = palette.text;
  context.fillText(words, left + 6, RULER / 2);
}
