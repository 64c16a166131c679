/** Brings the tiles that are seen, then those that will probably be seen next, and keeps those that were looked at last. */

import type { Window } from "../contract";
import { counterTileOf, levelOf, numbered, TILE_PIXELS, tileOf, tilesIn, tileSpan, type CounterTile, type Tile } from "./tiles";
import { Names } from "./names";
import { panned, spanOf, zoomed, type View } from "./view";

/** Asks for a stretch of some tracks. */
export type AskWindow = (begin: number, end: number, pixels: number, tracks: readonly number[]) => Promise<Window>;

interface Wish {
  readonly level: number;
  readonly index: number;
  readonly tracks: readonly number[];
}

const AT_ONCE = 3;
const AHEAD_AT_ONCE = 1;
const MOST_SLICES = 1_500_000;
const MOST_POINTS = 1_000_000;
const TRACKS_AT_ONCE = 64;
const AGAIN_MS = 4000;

export class Loader {
  readonly names = new Names();
  readonly tiles = new TileCache<Tile>(MOST_SLICES, (tile) => tile.start.length);
  readonly counters = new TileCache<CounterTile>(MOST_POINTS, (tile) => tile.at.length);
  private readonly underWay = new Set<string>();
  private isEnded = false;
  private wishes: Wish[] = [];
  private ahead: Wish[] = [];

  constructor(
    private readonly whole: number,
    private readonly counterIds: readonly number[],
    private readonly ask: AskWindow,
    private readonly came: () => void,
    private readonly failed: (message: string) => void,
  ) {}

  /** What is seen: a view on some tracks. `extra` is another view of it: the overview. */
  want(view: View, width: number, tracks: readonly number[], extra: readonly [View, number, readonly number[]]): void {
    this.tiles.tick();
    this.counters.tick();
    const level = levelOf(view, width);
    this.wishes = [...this.missing(view, level, tracks), ...this.missing(extra[0], levelOf(extra[0], extra[1]), extra[2])];
    this.ahead = this.wishes.length > 0 ? [] : this.next(view, level, tracks);
    this.pump();
  }

  end(): void {
    this.isEnded = true;
  }

  private next(view: View, level: number, tracks: readonly number[]): Wish[] {
    const middle = (view.begin + view.end) / 2;
    const views: readonly (readonly [View, number])[] = [
      [panned(view, spanOf(view) * 0.6, this.whole), level],
      [panned(view, -spanOf(view) * 0.6, this.whole), level],
      [zoomed(view, 0.5, middle, this.whole), Math.max(level - 1, 0)],
      [zoomed(view, 2, middle, this.whole), level + 1],
    ];
    return views.flatMap(([one, at]) => this.missing(one, at, tracks));
  }

  private missing(view: View, level: number, tracks: readonly number[]): Wish[] {
    const [first, last] = tilesIn(view, level, this.whole);
    const wishes: Wish[] = [];
    const middle = (first + last - 1) / 2;
    const indices = Array.from({ length: last - first }, (_, at) => first + at);
    for (const index of indices.sort((one, other) => Math.abs(one - middle) - Math.abs(other - middle))) {
      const wanted = this.lacking(level, index, tracks);
      for (let at = 0; at < wanted.length || (at === 0 && this.lacksCounters(level, index)); at += TRACKS_AT_ONCE) {
        wishes.push({ level, index, tracks: wanted.slice(at, at + TRACKS_AT_ONCE) });
      }
    }
    return wishes;
  }

  private lacking(level: number, index: number, tracks: readonly number[]): readonly number[] {
    return tracks.filter((track) => !this.tiles.has(track, level, index) && !this.underWay.has(`${level}/${index}/${track}`));
  }

  private lacksCounters(level: number, index: number): boolean {
    return this.counterIds.some((id) => !this.counters.has(id, level, index)) && !this.underWay.has(`${level}/${index}/`);
  }

  private pump(): void {
    const running = new Set([...this.underWay].map((key) => key.slice(0, key.lastIndexOf("/")))).size;
    for (let free = AT_ONCE - running; free > 0 && this.wishes.length > 0; free--) {
      this.start(this.wishes.shift());
    }
    for (let free = AHEAD_AT_ONCE - running; free > 0 && this.wishes.length === 0 && this.ahead.length > 0; free--) {
      this.start(this.ahead.shift());
    }
  }

  private start(wish: Wish | undefined): void {
    if (wish === undefined) {
      return;
    }
    const { level, index } = wish;
    // An earlier wish may have been for the same: the overview's tiles are the view's where that is the whole.
    const tracks = this.lacking(level, index, wish.tracks);
    if (tracks.length === 0 && !this.lacksCounters(level, index)) {
      return;
    }
    const keys = [...tracks.map((track) => `${level}/${index}/${track}`), `${level}/${index}/`];
    const done = (): void => keys.forEach((key) => this.underWay.delete(key));
    keys.forEach((key) => this.underWay.add(key));
    const begin = index * tileSpan(level);
    this.ask(begin, begin + tileSpan(level), TILE_PIXELS, tracks).then(
      (window) => {
        done();
        if (!this.isEnded) {
          this.keep(window, level, index);
          this.failed("");
          this.came();
        }
      },
      (error: unknown) => {
        // It counts as under way for some time, so that a server that is gone is not asked at each frame.
        setTimeout(() => {
          done();
          if (!this.isEnded) {
            this.came();
          }
        }, AGAIN_MS);
        if (!this.isEnded) {
          this.failed(error instanceof Error ? error.message : String(error));
        }
      },
    );
  }

  private keep(window: Window, level: number, index: number): void {
    const numbers = numbered(window, this.names);
    for (const track of window.tracks) {
      this.tiles.set(track.id, level, index, tileOf(window, track, numbers));
    }
    for (const counter of window.counters) {
      this.counters.set(counter.id, level, index, counterTileOf(window, counter));
    }
  }
}

interface Kept<T> {
  readonly tile: T;
  readonly size: number;
  seen: number;
}

/** A level and a place in it as one number: both together have fewer than 53 bits. */
function keyOf(level: number, index: number): number {
  return level * 2 ** 45 + index;
}

/** Tiles of several tracks or counters, up to a number of slices; those that were not looked at for longest go first. */
export class TileCache<T extends Tile | CounterTile> {
  private readonly tracks = new Map<number, Map<number, Kept<T>>>();
  private size = 0;
  private clock = 0;

  constructor(
    private readonly most: number,
    private readonly sizeOf: (tile: T) => number,
  ) {}

  get(track: number, level: number, index: number): T | undefined {
    const kept = this.tracks.get(track)?.get(keyOf(level, index));
    if (kept === undefined) {
      return undefined;
    }
    kept.seen = this.clock;
    return kept.tile;
  }

  has(track: number, level: number, index: number): boolean {
    return this.tracks.get(track)?.has(keyOf(level, index)) === true;
  }

  set(track: number, level: number, index: number, tile: T): void {
    const tiles = this.tracks.get(track) ?? new Map<number, Kept<T>>();
    this.tracks.set(track, tiles);
    this.size -= tiles.get(keyOf(level, index))?.size ?? 0;
    const size = 1 + this.sizeOf(tile);
    tiles.set(keyOf(level, index), { tile, size, seen: this.clock });
    this.size += size;
    if (this.size > this.most) {
      this.shrink();
    }
  }

  /** What is looked at from now on stays longer than what was looked at before. */
  tick(): void {
    this.clock++;
  }

  private shrink(): void {
    const all = [...this.tracks.values()].flatMap((tiles) => [...tiles].map(([key, kept]) => ({ tiles, key, kept })));
    all.sort((one, other) => one.kept.seen - other.kept.seen);
    for (const { tiles, key, kept } of all) {
      if (this.size <= this.most * 0.75 || kept.seen === this.clock) {
        return;
      }
      tiles.delete(key);
      this.size -= kept.size;
    }
  }
}
