/**
 * How time is cut into tiles: at level k a pixel is 2^k ns and a tile so many pixels wide, so that a tile has two
 * halves on the level below. A view shows the tiles of one level; where one is not there yet, what covers it does.
 */

import { spanOf, type View } from "./view";

export const TILE_PIXELS = 512;
const TOP = 44;

/** The level at which a pixel of the view is at most the level's. */
export function levelOf(view: View, width: number): number {
  return Math.min(Math.max(Math.floor(Math.log2(spanOf(view) / Math.max(width, 1))), 0), TOP);
}

export function tileSpan(level: number): number {
  return TILE_PIXELS * 2 ** level;
}

/** The first tile of a level that a view shows, and the one behind the last. */
export function tilesIn(view: View, level: number, whole: number): readonly [number, number] {
  const span = tileSpan(level);
  const most = Math.max(Math.ceil(whole / span), 1);
  return [Math.min(Math.max(Math.floor(view.begin / span), 0), most - 1), Math.min(Math.max(Math.ceil(view.end / span), 1), most)];
}

/** A tile that is drawn in the stretch [begin, end). */
export interface Piece<T> {
  readonly tile: T;
  readonly begin: number;
  readonly end: number;
}

type Lookup<T> = (level: number, index: number) => T | undefined;

const UP = 14;
const DOWN = 3;

/** What is there of a view: the tiles of its level, else coarser ones, else finer ones. */
export function covering<T>(view: View, level: number, whole: number, lookup: Lookup<T>): readonly Piece<T>[] {
  const [first, last] = tilesIn(view, level, whole);
  const pieces: Piece<T>[] = [];
  for (let index = first; index < last; index++) {
    cover(level, index, lookup, pieces);
  }
  return pieces;
}

function cover<T>(level: number, index: number, lookup: Lookup<T>, pieces: Piece<T>[]): void {
  const [begin, end] = [index * tileSpan(level), (index + 1) * tileSpan(level)];
  for (let up = 0; up <= UP && level + up <= TOP; up++) {
    const tile = lookup(level + up, Math.floor(index / 2 ** up));
    if (tile !== undefined) {
      pieces.push({ tile, begin, end });
      return;
    }
  }
  below(level, index, lookup, pieces, DOWN);
}

function below<T>(level: number, index: number, lookup: Lookup<T>, pieces: Piece<T>[], deeper: number): void {
  if (level === 0 || deeper === 0) {
    return;
  }
  const span = tileSpan(level - 1);
  for (const half of [2 * index, 2 * index + 1]) {
    const tile = lookup(level - 1, half);
    if (tile === undefined) {
      below(level - 1, half, lookup, pieces, deeper - 1);
    } else {
      pieces.push({ tile, begin: half * span, end: (half + 1) * span });
    }
  }
}
