/** The strip that shows the whole: drawn once for the tiles that are there, and copied below its brush in each frame. */

import type { Timeline, Track } from "../contract";
import type { Piece, Tile } from "./tiles";
import { overviewOf } from "./layout";
import type { Scene, Spot } from "./scene";
import { fillsOf } from "./drawTracks";
import { toX, type View } from "./view";

export class Overview {
  readonly tracks: readonly Track[];
  private readonly canvas = document.createElement("canvas");
  /** What the strip was drawn from. */
  private drawn: readonly unknown[] = [];

  constructor(private readonly of: Timeline) {
    this.tracks = overviewOf(of);
  }

  resize(width: number, ratio: number): void {
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(OVERVIEW * ratio);
    this.drawn = [];
  }

  draw(context: CanvasRenderingContext2D, scene: Scene, tiles: (track: number) => readonly Piece<Tile>[], found: readonly Spot[]): void {
    const pieces = new Map(this.tracks.map(({ id }) => [id, tiles(id)]));
    const from = [scene.palette, scene.colouring, ...[...pieces.values()].flatMap((list) => list.map(({ tile }) => tile))];
    if (from.length !== this.drawn.length || from.some((part, at) => part !== this.drawn[at])) {
      this.drawn = from;
      drawWhole(opaque(this.canvas), scene, scene.width, this.tracks, (track) => pieces.get(track) ?? []);
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.canvas, 0, 0);
    drawBrush(context, scene, scene.view, Math.max(this.of.endNs, 1), scene.width, found);
  }
}

/** A canvas that nothing shines through, which is cheaper to show. */
export function opaque(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const context = canvas.getContext("2d", { alpha: false });
  if (context === null) {
    throw new Error("this browser draws on no canvas");
  }
  return context;
}

export const OVERVIEW = 44;
const EDGE = 3;
const LEAST_BRUSH = 4;

/** The strip without its brush; kept until something of it changes. */
function drawWhole(
  context: CanvasRenderingContext2D,
  scene: Pick<Scene, "palette" | "ratio" | "of" | "names" | "colouring">,
  width: number,
  tracks: readonly Track[],
  tiles: (track: number) => readonly Piece<Tile>[],
): void {
  const { palette, ratio, of } = scene;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = palette.surface;
  context.fillRect(0, 0, width * ratio, OVERVIEW * ratio);
  const scale = (width * ratio) / Math.max(of.endNs, 1);
  const streams = tracks.filter((track) => track.kind === "stream").length;
  const room = (OVERVIEW - 2 * EDGE) * ratio;
  const below = streams === 0 ? 0 : Math.min(room / 2, streams * 12 * ratio);
  let y = EDGE * ratio;
  for (const track of tracks) {
    const height = track.kind === "stream" ? below / streams : room - below;
    drawStrip(context, scene, track, tiles(track.id), y, height - (height > 4 * ratio ? ratio : 0), scale);
    y += height;
  }
}

function drawStrip(
  context: CanvasRenderingContext2D,
  scene: Pick<Scene, "palette" | "of" | "names" | "colouring">,
  track: Track,
  pieces: readonly Piece<Tile>[],
  top: number,
  height: number,
  scale: number,
): void {
  const thickness = Math.max(height / Math.max(track.rows, 1), 1);
  let last = -1;
  for (let row = 0; row < track.rows; row++) {
    const y = Math.round(top + (row * height) / track.rows);
    if (y === last) {
      continue;
    }
    last = y;
    for (const { tile } of pieces) {
      const fills = fillsOf(tile, scene);
      let edge = -1;
      for (let at = tile.rows[row] ?? 0; at < (tile.rows[row + 1] ?? 0); at++) {
        const from = Math.max(Math.round((tile.start[at] ?? 0) * scale), edge);
        const to = Math.max(Math.round((tile.stop[at] ?? 0) * scale), from + 1);
        if (to > edge) {
          context.fillStyle = scene.palette.fills[fills[at] ?? 0] ?? scene.palette.muted;
          context.fillRect(from, y, to - from, Math.max(Math.round(thickness), 1));
          edge = to;
        }
      }
    }
  }
}

/** Where the view is, and what a search found. */
function drawBrush(
  context: CanvasRenderingContext2D,
  { palette, ratio }: Pick<Scene, "palette" | "ratio">,
  view: View,
  whole: number,
  width: number,
  found: readonly Spot[],
): void {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = palette.heat;
  let last = -1;
  for (const { start } of found) {
    const x = Math.round((start / Math.max(whole, 1)) * width);
    if (x !== last) {
      context.fillRect(x, 0, 1, 5);
      last = x;
    }
  }
  const [from, to] = brushOf(view, whole, width);
  context.fillStyle = palette.background;
  context.globalAlpha = 0.5;
  context.fillRect(0, 0, from, OVERVIEW);
  context.fillRect(to, 0, width - to, OVERVIEW);
  context.globalAlpha = 1;
  context.strokeStyle = palette.accent;
  context.lineWidth = 1;
  context.strokeRect(Math.round(from) + 0.5, 0.5, Math.max(Math.round(to - from) - 1, 1), OVERVIEW - 1);
}

/** The brush's left and right, never too narrow to be taken. */
export function brushOf(view: View, whole: number, width: number): readonly [number, number] {
  const all = { begin: 0, end: Math.max(whole, 1) };
  const [from, to] = [toX(view.begin, all, width), toX(view.end, all, width)];
  const lack = Math.max(LEAST_BRUSH - (to - from), 0) / 2;
  return [from - lack, to + lack];
}
