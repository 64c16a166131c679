/** Draws what stands above the slices: the pointer, what is chosen and found, arrows, a marked stretch. */

import type { Link } from "../contract";
import type { Lane, TrackLane } from "./layout";
import type { Marks, Scene, Spot } from "./scene";
import { valueAt } from "./tiles";
import { toX } from "./view";
import { valueWords } from "../words";

const SMALL = 6;

export function drawMarks(context: CanvasRenderingContext2D, scene: Scene, marks: Marks): void {
  const { ratio, width, height, palette } = scene;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (marks.stretch !== undefined) {
    drawStretch(context, scene, toX(marks.stretch.begin, scene.view, width), toX(marks.stretch.end, scene.view, width));
  }
  const tracks = new Map(scene.lanes.flatMap((lane): [number, TrackLane][] => (lane.type === "track" ? [[lane.track.id, lane]] : [])));
  // Wide ones stand out by themselves: the others are dim.
  const small = (SMALL * (scene.view.end - scene.view.begin)) / width;
  for (const spot of marks.found) {
    if (spot.end - spot.start < small) {
      outline(context, scene, tracks, spot, palette.heat, 1);
    }
  }
  if (marks.hovered !== undefined) {
    outline(context, scene, tracks, marks.hovered, palette.text, 1);
  }
  for (const link of marks.links) {
    drawArrow(context, scene, tracks, link);
  }
  if (marks.chosen !== undefined) {
    outline(context, scene, tracks, marks.chosen, palette.text, 2);
  }
  if (marks.pointer !== undefined) {
    const x = Math.round(toX(marks.pointer, scene.view, width));
    context.fillStyle = palette.strong;
    context.fillRect(x, 0, 1, height);
    drawValues(context, scene, marks.pointer, x);
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
}

function drawStretch(context: CanvasRenderingContext2D, { height, width, palette }: Scene, from: number, to: number): void {
  context.fillStyle = palette.accent;
  context.globalAlpha = 0.1;
  context.fillRect(from, 0, to - from, height);
  context.globalAlpha = 0.05;
  context.fillStyle = palette.text;
  context.fillRect(0, 0, Math.max(from, 0), height);
  context.fillRect(to, 0, Math.max(width - to, 0), height);
  context.globalAlpha = 1;
  context.fillStyle = palette.accent;
  context.fillRect(Math.round(from) - 1, 0, 1, height);
  context.fillRect(Math.round(to), 0, 1, height);
}

function outline(
  context: CanvasRenderingContext2D,
  scene: Scene,
  tracks: ReadonlyMap<number, TrackLane>,
  spot: Spot,
  colour: string,
  thickness: number,
): void {
  const lane = tracks.get(spot.track);
  if (lane === undefined) {
    return;
  }
  const { view, width, top, height } = scene;
  const [from, to] = [Math.max(toX(spot.start, view, width), -4), Math.min(toX(spot.end, view, width), width + 4)];
  const y = topOf(lane, spot.row) - top;
  if (to < 0 || from > width || y > height || y + lane.rowHeight < 0) {
    return;
  }
  context.strokeStyle = colour;
  context.lineWidth = thickness;
  const inset = thickness / 2;
  context.strokeRect(Math.round(from) + inset, Math.round(y) + inset, Math.max(Math.round(to - from) - thickness - 1, 1), Math.max(lane.rowHeight - 1 - thickness, 1));
}

function topOf(lane: TrackLane, row: number): number {
  return lane.y + lane.head + row * lane.rowHeight;
}

function drawArrow(context: CanvasRenderingContext2D, scene: Scene, tracks: ReadonlyMap<number, TrackLane>, link: Link): void {
  const [from, to] = [tracks.get(link.fromTrack), tracks.get(link.toTrack)];
  if (from === undefined || to === undefined) {
    return;
  }
  const { view, width, top, palette } = scene;
  const far = 20 * width;
  const x0 = Math.min(Math.max(toX(link.fromNs, view, width), -far), far);
  const x1 = Math.min(Math.max(toX(link.toNs, view, width), -far), far);
  const y0 = topOf(from, link.fromRow) + from.rowHeight / 2 - top;
  const y1 = topOf(to, link.toRow) + to.rowHeight / 2 - top;
  const bend = Math.min(Math.max(Math.abs(x1 - x0) / 2, 24), 160);
  context.strokeStyle = palette.heat;
  context.fillStyle = palette.heat;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 7, y1 - 4);
  context.lineTo(x1 - 7, y1 + 4);
  context.fill();
  context.beginPath();
  context.arc(x0, y0, 2.5, 0, 2 * Math.PI);
  context.fill();
}

/** The counters' values at the pointer. */
function drawValues(context: CanvasRenderingContext2D, scene: Scene, ns: number, x: number): void {
  const { palette, top, width } = scene;
  context.font = `11px ${palette.font}`;
  context.textBaseline = "middle";
  for (const lane of scene.lanes) {
    const value = valueOf(scene, lane, ns);
    if (lane.type !== "counter" || !lane.isOpen || value === undefined) {
      continue;
    }
    const words = valueWords(value, lane.counter.unit);
    const wide = context.measureText(words).width + 8;
    const left = x + 6 + wide > width ? x - 6 - wide : x + 6;
    const y = lane.y + lane.head + 3 - top;
    context.fillStyle = palette.surface;
    context.fillRect(left, y, wide, 16);
    context.fillStyle = palette.text;
    context.fillText(words, left + 4, y + 8.5);
  }
}

function valueOf(scene: Scene, lane: Lane, ns: number): number | undefined {
  if (lane.type !== "counter") {
    return undefined;
  }
  const piece = scene.charts(lane.counter.id).find(({ begin, end }) => ns >= begin && ns < end);
  return piece === undefined ? undefined : valueAt(piece.tile, ns);
}
