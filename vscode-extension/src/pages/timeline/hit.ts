/** Which slice stands where, and which ones stand beside it. */

import { firstAfter, sliceAt, type Piece, type Tile } from "./tiles";
import { laneAt, rowAt, type Lane, type TrackLane } from "./layout";
import type { Spot } from "./scene";
import { spanOf, toNs, type View } from "./view";

export interface Hit extends Spot {
  /** Into `Names`. */
  readonly name: number;
  /** Into `Timeline.kinds`. */
  readonly kind: number;
  /** Into `Timeline.places`; -1 for none. */
  readonly place: number;
  /** -1 for joined ones. */
  readonly slice: number;
  readonly count: number;
  readonly busy: number;
}

/** What hit testing looks at. */
export interface Ground {
  readonly lanes: readonly Lane[];
  readonly view: View;
  readonly width: number;
  readonly tiles: (track: number) => readonly Piece<Tile>[];
}

/** Pixels beside a slice that count as on it. */
const REACH = 3;

/** The slice at a place, `y` from the top of all lanes. */
export function hitAt(ground: Ground, x: number, y: number): Hit | undefined {
  const lane = laneAt(ground.lanes, y);
  if (lane?.type !== "track") {
    return undefined;
  }
  const row = rowAt(lane, y);
  const ns = toNs(x, ground.view, ground.width);
  const piece = ground.tiles(lane.track.id).find(({ begin, end }) => ns >= begin && ns < end);
  if (row < 0 || piece === undefined) {
    return undefined;
  }
  const at = sliceAt(piece.tile, row, ns, (REACH * spanOf(ground.view)) / ground.width);
  return at < 0 ? undefined : hitOf(lane, piece.tile, row, at);
}

function hitOf(lane: TrackLane, tile: Tile, row: number, at: number): Hit {
  return {
    track: lane.track.id,
    row,
    start: tile.start[at] ?? 0,
    end: tile.stop[at] ?? 0,
    name: tile.name[at] ?? 0,
    kind: tile.kind[at] ?? 0,
    place: tile.place[at] ?? -1,
    slice: tile.slice[at] ?? -1,
    count: tile.count[at] ?? 1,
    busy: tile.busy[at] ?? 0,
  };
}

export type Direction = "next" | "previous" | "above" | "below";

/** The slice beside another one; joined ones are passed over, for they have no number. */
export function beside(ground: Ground, from: Spot, direction: Direction): Hit | undefined {
  const lane = ground.lanes.find((one): one is TrackLane => one.type === "track" && one.track.id === from.track);
  if (lane === undefined) {
    return undefined;
  }
  const pieces = ground.tiles(lane.track.id);
  const row = direction === "above" ? from.row - 1 : direction === "below" ? from.row + 1 : from.row;
  const hits = pieces.flatMap(({ tile }) => rowHits(lane, tile, row));
  switch (direction) {
    case "next":
      return nearest(hits.filter(({ start }) => start >= from.end), (hit) => hit.start - from.end);
    case "previous":
      return nearest(hits.filter(({ end }) => end <= from.start), (hit) => from.start - hit.end);
    case "above":
      return hits.find(({ start, end }) => start <= from.start && end >= from.end);
    case "below":
      return nearest(hits.filter(({ start, end }) => start >= from.start && end <= from.end), (hit) => hit.start);
  }
}

function rowHits(lane: TrackLane, tile: Tile, row: number): Hit[] {
  if (row < 0 || row + 1 >= tile.rows.length) {
    return [];
  }
  const [first, last] = [tile.rows[row] ?? 0, tile.rows[row + 1] ?? 0];
  return Array.from({ length: last - first }, (_, index) => hitOf(lane, tile, row, first + index)).filter(({ slice }) => slice >= 0);
}

function nearest(hits: readonly Hit[], distance: (hit: Hit) => number): Hit | undefined {
  return hits.reduce<Hit | undefined>((best, hit) => (best === undefined || distance(hit) < distance(best) ? hit : best), undefined);
}

/** A slice near the middle of the view on the first track that has one, to begin with. */
export function middleOf(ground: Ground): Hit | undefined {
  const middle = (ground.view.begin + ground.view.end) / 2;
  for (const lane of ground.lanes) {
    if (lane.type === "track" && lane.isOpen && lane.track.kind !== "steps") {
      for (const { tile } of ground.tiles(lane.track.id)) {
        const at = firstAfter(tile, 0, middle);
        if (at < (tile.rows[1] ?? 0) && (tile.slice[at] ?? -1) >= 0) {
          return hitOf(lane, tile, 0, at);
        }
      }
    }
  }
  return undefined;
}
