/** Draws the slices of the tracks, in the screen's own pixels, so that edges are sharp and cheap; and counters as areas. */

import { firstAfter, type Piece, type Tile } from "./tiles";
import { seen, type CounterLane, type Lane, type TrackLane } from "./layout";
import { chartOf, fillOf, type Colouring } from "./palette";
import type { Scene } from "./scene";
import { spanOf } from "./view";

const LEAST_LABEL = 26;
const LEAST_ROW = 12;
const FONT = 11;
const SPACE = 4;
/** The colour's number of what a search does not find. */
const DIM = -1;

export function drawTracks(context: CanvasRenderingContext2D, scene: Scene): void {
  const { palette, ratio, width, height, top } = scene;
  context.fillStyle = palette.background;
  context.fillRect(0, 0, width * ratio, height * ratio);
  context.font = `${FONT * ratio}px ${palette.font}`;
  context.textBaseline = "alphabetic";
  for (const lane of seen(scene.lanes, top, top + height)) {
    drawLane(context, scene, lane);
  }
}

/** The steps once more, above what was scrolled below them. */
export function drawPinned(context: CanvasRenderingContext2D, scene: Scene): void {
  const lane = scene.lanes.at(-1);
  if (lane?.type === "track" && lane.track.kind === "steps" && scene.top > 0) {
    context.fillStyle = scene.palette.background;
    context.fillRect(0, 0, scene.width * scene.ratio, (lane.y + lane.height + 3 - scene.top) * scene.ratio);
    drawLane(context, scene, lane);
  }
}

function drawLane(context: CanvasRenderingContext2D, scene: Scene, lane: Lane): void {
  const { palette, ratio, width, top } = scene;
  context.fillStyle = palette.border;
  context.fillRect(0, Math.round((lane.y + lane.height + 2 - top) * ratio), width * ratio, 1);
  if (lane.type === "track") {
    drawTrack(context, scene, lane, scene.tiles(lane.track.id));
  }
}

/** Words wait until the slices of a row are drawn: changing between both costs more than each. */
interface Words {
  readonly text: string;
  readonly x: number;
  readonly fill: string;
}

function drawTrack(context: CanvasRenderingContext2D, scene: Scene, lane: TrackLane, pieces: readonly Piece<Tile>[]): void {
  const { ratio, top, height } = scene;
  const words: Words[] = [];
  let last = -Infinity;
  for (let row = 0; row < lane.track.rows; row++) {
    const y = (lane.y + lane.head + row * lane.rowHeight - top) * ratio;
    const bottom = y + lane.rowHeight * ratio;
    if (bottom < 0 || y > height * ratio || Math.round(y) === last) {
      continue;
    }
    last = Math.round(y);
    const gap = lane.rowHeight > 6 ? ratio : 0;
    const thickness = Math.max(Math.round(bottom - gap) - last, 1);
    words.length = 0;
    for (const piece of pieces) {
      drawRow(context, scene, piece, row, last, thickness, lane.rowHeight >= LEAST_ROW ? words : undefined);
    }
    const baseline = Math.round(last + thickness / 2 + FONT * ratio * 0.36);
    let fill = "";
    for (const one of words) {
      if (one.fill !== fill) {
        fill = one.fill;
        context.fillStyle = fill;
      }
      context.fillText(one.text, one.x, baseline);
    }
  }
}

function drawRow(
  context: CanvasRenderingContext2D,
  scene: Scene,
  piece: Piece<Tile>,
  row: number,
  y: number,
  thickness: number,
  words: Words[] | undefined,
): void {
  const { view, ratio, palette } = scene;
  const { tile } = piece;
  const across = scene.width * ratio;
  const scale = across / spanOf(view);
  const left = Math.max(Math.round((piece.begin - view.begin) * scale), 0);
  const right = Math.min(Math.round((piece.end - view.begin) * scale), across);
  const until = tile.rows[row + 1] ?? 0;
  const fills = fillsOf(tile, scene);
  let [edge, number, alpha] = [left, -2, 1];
  for (let at = firstAfter(tile, row, Math.max(piece.begin, view.begin)); at < until; at++) {
    const start = Math.round(((tile.start[at] ?? 0) - view.begin) * scale);
    if (start >= right) {
      break;
    }
    const stop = Math.max(Math.round(((tile.stop[at] ?? 0) - view.begin) * scale), start + 1);
    const from = Math.max(start, edge);
    const to = Math.min(stop, right);
    if (to <= from) {
      continue;
    }
    edge = to;
    const fill = isDimmed(tile, at, scene) ? DIM : (fills[at] ?? 0);
    if (fill !== number) {
      number = fill;
      context.fillStyle = fill === DIM ? palette.dim : (palette.fills[fill] ?? palette.dim);
    }
    const shown = (tile.count[at] ?? 1) > 1 ? density(tile, at) : 1;
    if (shown !== alpha) {
      alpha = shown;
      context.globalAlpha = shown;
    }
    // A line of background parts neighbours that are wide enough.
    context.fillRect(from, y, to - from > 3 * ratio && to === stop ? to - from - ratio : to - from, thickness);
    if (words !== undefined && stop - start >= LEAST_LABEL * ratio && tile.count[at] === 1) {
      label(scene, tile, at, fill, Math.max(start, 0), Math.min(stop, across), left, right, words);
    }
  }
  if (alpha !== 1) {
    context.globalAlpha = 1;
  }
}

/** The words of a slice, in the piece in which they begin. */
function label(
  scene: Scene,
  tile: Tile,
  at: number,
  fill: number,
  start: number,
  stop: number,
  left: number,
  right: number,
  words: Words[],
): void {
  const { ratio, palette } = scene;
  if (start < left || start >= right || stop - start < LEAST_LABEL * ratio) {
    return;
  }
  const text = scene.labels.fitted(scene.names.texts[tile.name[at] ?? 0] ?? "", (stop - start) / ratio - 2 * SPACE);
  if (text !== "") {
    words.push({ text, x: start + SPACE * ratio, fill: fill === DIM ? palette.dimWords : (palette.words[fill] ?? palette.text) });
  }
}

function isDimmed(tile: Tile, at: number, { sought, names }: Scene): boolean {
  if (sought === undefined) {
    return false;
  }
  return sought.places === undefined ? !names.isFound(tile.name[at] ?? 0) : !sought.places.has(tile.place[at] ?? -1);
}

/** How opaque joined slices are: by how much of their stretch they cover, in a few steps. */
function density(tile: Tile, at: number): number {
  const length = Math.max((tile.stop[at] ?? 0) - (tile.start[at] ?? 0), 1);
  return 0.4 + 0.15 * Math.round(Math.min((tile.busy[at] ?? 0) / length, 1) * 4);
}

interface Fills {
  readonly colouring: Colouring;
  readonly numbers: Uint16Array;
}

const kept = new WeakMap<Tile, Fills>();

/** The number of each slice's colour. */
export function fillsOf(tile: Tile, { colouring, names, of }: Pick<Scene, "colouring" | "names" | "of">): Uint16Array {
  const before = kept.get(tile);
  if (before?.colouring === colouring) {
    return before.numbers;
  }
  const numbers = Uint16Array.from(tile.name, (name, at) =>
    fillOf(of.kinds[tile.kind[at] ?? 0] ?? "other", names.texts[name] ?? "", names.hashes[name] ?? 0, tile.place[at] ?? -1, colouring),
  );
  kept.set(tile, { colouring, numbers });
  return numbers;
}

/** Draws counters as areas: from each time on the value that was told then. */
export function drawCharts(context: CanvasRenderingContext2D, scene: Scene): void {
  const { ratio, top, height } = scene;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  for (const lane of seen(scene.lanes, top, top + height)) {
    if (lane.type === "counter") {
      drawChart(context, scene, lane);
    }
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
}

function drawChart(context: CanvasRenderingContext2D, scene: Scene, lane: CounterLane): void {
  const { view, width, palette, top } = scene;
  const scale = width / spanOf(view);
  const bottom = lane.y + lane.height - top;
  const high = (lane.height - lane.head - 2) / Math.max(lane.counter.largest, 1e-9);
  const tone = palette.charts[chartOf(lane.title)] ?? palette.accent;
  for (const { tile, begin, end } of scene.charts(lane.counter.id)) {
    const left = Math.max((begin - view.begin) * scale, 0);
    const right = Math.min((end - view.begin) * scale, width);
    if (tile.at.length === 0 || right <= left) {
      continue;
    }
    const edge = new Path2D();
    const area = new Path2D();
    let [first, y] = [-1, bottom];
    for (const [index, at] of tile.at.entries()) {
      if (at >= end) {
        break;
      }
      const x = Math.min(Math.max((at - view.begin) * scale, left), right);
      const next = bottom - Math.max(tile.value[index] ?? 0, 0) * high;
      if (first < 0 || x === first) {
        // What lies before the piece only says with which value it begins.
        first = x;
        edge.moveTo(x, next);
        area.moveTo(x, bottom);
      } else {
        edge.lineTo(x, y);
        area.lineTo(x, y);
      }
      edge.lineTo(x, next);
      area.lineTo(x, next);
      y = next;
      if (x >= right) {
        break;
      }
    }
    if (first < 0) {
      continue;
    }
    edge.lineTo(right, y);
    area.lineTo(right, y);
    area.lineTo(right, bottom);
    context.fillStyle = tone;
    context.globalAlpha = 0.22;
    context.fill(area);
    context.globalAlpha = 0.9;
    context.strokeStyle = tone;
    context.lineWidth = 1;
    context.stroke(edge);
    context.globalAlpha = 1;
  }
}
