/** What a chart draws besides its lines: moments with a word, and stretches of time. */

import type uPlot from "uplot";

/** A vertical line with a word, or a dot on the first series. */
export interface Mark {
  readonly at: number;
  readonly label: string;
  readonly colour: string;
  /** Where the dot is; none without. */
  readonly value?: number;
}

/** A stretch of time with a word: a step. */
export interface Band {
  readonly begin: number;
  readonly end: number;
  readonly label: string;
}

type Colour = (name: string) => string;

/** Every second stretch is shaded, below the grid. */
export function shadeBands(plot: uPlot, bands: readonly Band[], colour: Colour): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = colour("--surface");
  for (const [place, band] of bands.entries()) {
    const ends = placesOf(plot, band);
    if (place % 2 === 1 && ends !== undefined) {
      ctx.fillRect(ends[0], bbox.top, ends[1] - ends[0], bbox.height);
    }
  }
  ctx.restore();
}

/** The words of the stretches that have room for theirs. */
export function nameBands(plot: uPlot, bands: readonly Band[], colour: Colour, font: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.font = scaledFont(font);
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  ctx.fillStyle = colour("--muted");
  for (const band of bands) {
    const ends = placesOf(plot, band);
    if (ends !== undefined && ends[1] - ends[0] > ctx.measureText(band.label).width + 8) {
      ctx.fillText(band.label, ends[0] + 4, bbox.top + 4);
    }
  }
  ctx.restore();
}

function placesOf(plot: uPlot, { begin, end }: Band): readonly [number, number] | undefined {
  const { min = 0, max = 1 } = plot.scales["x"] ?? {};
  const { left, width } = plot.bbox;
  return end < min || begin > max ? undefined : [Math.max(plot.valToPos(begin, "x", true), left), Math.min(plot.valToPos(end, "x", true), left + width)];
}

export function drawMarks(plot: uPlot, marks: readonly Mark[], colour: Colour, font: string): void {
  const { ctx, bbox } = plot;
  const { min = 0, max = 1 } = plot.scales["x"] ?? {};
  const ratio = window.devicePixelRatio;
  ctx.save();
  ctx.font = scaledFont(font);
  ctx.textBaseline = "bottom";
  for (const { at, label, colour: name, value } of marks) {
    if (at < min || at > max) {
      continue;
    }
    const x = Math.round(plot.valToPos(at, "x", true));
    ctx.strokeStyle = ctx.fillStyle = colour(name);
    ctx.lineWidth = ratio;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (value !== undefined) {
      ctx.beginPath();
      ctx.arc(x, plot.valToPos(value, "y", true), 3.5 * ratio, 0, 2 * Math.PI);
      ctx.fill();
    }
    const isLeft = x + 6 * ratio + ctx.measureText(label).width < bbox.left + bbox.width;
    ctx.textAlign = isLeft ? "left" : "right";
    ctx.fillText(label, x + (isLeft ? 5 : -5) * ratio, bbox.top - 1);
  }
  ctx.restore();
}

function scaledFont(font: string): string {
  return font.replace(/^(\d+)px/, (_, size) => `${Number(size) * window.devicePixelRatio}px`);
}
