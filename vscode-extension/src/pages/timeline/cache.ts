/** Tiles that came, by track, level and place; those that were not looked at for longest go first. */

import type { CounterTile, Tile } from "./tiles";

interface Kept<T> {
  readonly tile: T;
  readonly size: number;
  seen: number;
}

/** A level and a place in it as one number: both together have fewer than 53 bits. */
function keyOf(level: number, index: number): number {
  return level * 2 ** 45 + index;
}

/** Tiles of several tracks or counters, up to a number of slices. */
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
