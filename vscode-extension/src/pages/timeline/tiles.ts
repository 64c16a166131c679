/** A part of a track as it is drawn and looked up: columns by row, each in order of time. */

import type { CounterWindow, TrackWindow, Window } from "../contract";
import { firstAbove } from "../parts/chartScale";
import type { Names } from "./names";

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
