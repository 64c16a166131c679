/** The strip that shows the whole: drawn once for the tiles that are there, and copied below its brush in each frame. */

import type { Timeline, Track } from "../contract";
import { drawBrush, drawWhole, OVERVIEW } from "./drawOverview";
import type { Piece } from "./grid";
import { overviewOf } from "./layout";
import type { Scene, Spot } from "./scene";
import type { Tile } from "./tiles";

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
