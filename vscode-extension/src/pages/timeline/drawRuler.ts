/** Draws the ruler above the tracks: round times, the pointer's time, the marked stretch. */

import { duration } from "../words";
import type { Palette } from "./palette";
import type { Marks } from "./scene";
import { exact, ticks } from "./ticks";
import { toX, type View } from "./view";

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
