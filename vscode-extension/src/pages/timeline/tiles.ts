/**
 * How time is cut into tiles: at level k a pixel is 2^k ns and a tile so many pixels wide, so that a tile has two
 * halves on the level below. A view shows the tiles of one level; where one is not there yet, what covers it does.
 * A tile has columns by row, each in order of time.
 */

import type { CounterWindow, TrackWindow, Window } from "../contract";
import { firstAbove } from "../parts/chartScale";
import type { Names } from "./names";
import { spanOf, type View } from "./view";

export interface Tile {
  readonly begin: number;
  readonly end: number;
  /** Where each row begins; one more than there are rows. */
  readonly rows: Int32Array;
  readonly start: Float64Array;
  readonly stop: Float64Array;
  /** Into `Names`. */
  readonly name: Int32Array;
  readonly kind: Uint8Array;
  readonly place: Int32Array;
  /** -1 for joined ones. */
  readonly slice: Int32Array;
  readonly count: Int32Array;
  /** Nanoseconds that are covered. */
  readonly busy: Float64Array;
}

export interface CounterTile {
  readonly begin: number;
  readonly end: number;
  readonly at: readonly number[];
  readonly value: readonly number[];
}

/** A track's part of an answer. `numbers` has the numbers in `Names` of the answer's names. */
export function tileOf(window: Window, track: TrackWindow, numbers: readonly number[]): Tile {
  const depth = track.row.reduce((most, row) => Math.max(most, row + 1), 0);
  const rows = new Int32Array(depth + 1);
  for (const row of track.row) {
    rows[row + 1] = (rows[row + 1] ?? 0) + 1;
  }
  for (let row = 0; row < depth; row++) {
    rows[row + 1] = (rows[row + 1] ?? 0) + (rows[row] ?? 0);
  }
  return {
    begin: window.beginNs,
    end: window.endNs,
    rows,
    start: Float64Array.from(track.start),
    stop: Float64Array.from(track.end),
    name: Int32Array.from(track.name, (name) => numbers[name] ?? 0),
    kind: Uint8Array.from(track.kind),
    place: Int32Array.from(track.place),
    slice: Int32Array.from(track.slice),
    count: Int32Array.from(track.count),
    busy: Float64Array.from(track.busy),
  };
}

export function counterTileOf(window: Window, counter: CounterWindow): CounterTile {
  return { begin: window.beginNs, end: window.endNs, at: counter.at, value: counter.value };
}

/** The numbers in `names` of an answer's names. */
export function numbered(window: Window, names: Names): readonly number[] {
  return window.names.map((name) => names.number(name));
}

/** Of a row the first slice that ends after a time; where its row ends if none does. */
export function firstAfter(tile: Tile, row: number, ns: number): number {
  return firstAbove(tile.stop, ns, tile.rows[row] ?? 0, tile.rows[row + 1] ?? 0);
}

/** The slice of a row at a time, or -1; within `reach` nanoseconds beside it counts as well. */
export function sliceAt(tile: Tile, row: number, ns: number, reach: number): number {
  const end = tile.rows[row + 1] ?? 0;
  let [best, distance] = [-1, reach];
  for (let at = firstAfter(tile, row, ns - reach); at < end && (tile.start[at] ?? 0) <= ns + reach; at++) {
    const away = Math.max((tile.start[at] ?? 0) - ns, ns - (tile.stop[at] ?? 0), 0);
    if (away < distance || (best < 0 && away <= distance)) {
      [best, distance] = [at, away];
    }
  }
  return best;
}

/** A counter's value at a time; undefined before its first one. */
export function valueAt({ at, value }: CounterTile, ns: number): number | undefined {
  return value[firstAbove(at, ns) - 1];
}

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
