import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Window } from "../src/pages/contract";
import { Loader, TileCache } from "../src/pages/timeline/loader";
import { counterTileOf, covering, firstAfter, levelOf, numbered, sliceAt, TILE_PIXELS, tileOf, tilesIn, tileSpan, valueAt, type Tile } from "../src/pages/timeline/tiles";
import { beside, hitAt, middleOf, type Ground } from "../src/pages/timeline/hit";
import { Labels, Names } from "../src/pages/timeline/names";
import { heightOf, laneAt, lanesOf, overviewOf, pinned, rowAt, type Choices } from "../src/pages/timeline/layout";
import { fillOf } from "../src/pages/timeline/palette";
import { placesAt } from "../src/pages/timeline/address";
import { given, head, rowsOf, windowOf } from "./timeline";

function tile(begin: number, end: number, rows = 2, every = 100, length = 60): Tile {
  const window = windowOf(begin, end, [rowsOf(1, begin, end, rows, every, length)]);
  return tileOf(window, given(window.tracks[0]), numbered(window, new Names()));
}

const CHOICES: Choices = { turned: new Set(), filter: "", hasHeads: false };

describe("tiles", () => {
  it("have each row's slices behind each other, and find those of a time", () => {
    const one = tile(1000, 2000);
    expect([...one.rows]).toEqual([0, 10, 20]);
    expect(one.start[firstAfter(one, 1, 1060)]).toBe(1100);
    expect(one.start[firstAfter(one, 1, 1059)]).toBe(1000);
    expect(firstAfter(one, 1, 5000)).toBe(20);
  });

  it("are hit within a slice, and a little beside it, the nearest first", () => {
    const one = tile(1000, 2000);
    expect(one.start[sliceAt(one, 0, 1130, 0)]).toBe(1100);
    expect(sliceAt(one, 0, 1180, 10)).toBe(-1);
    expect(one.start[sliceAt(one, 0, 1185, 30)]).toBe(1200);
    expect(one.start[sliceAt(one, 0, 1170, 30)]).toBe(1100);
    expect(sliceAt(one, 7, 1170, 30)).toBe(-1);
  });

  it("tell a counter's value from the last time on", () => {
    const window = windowOf(1000, 2000, []);
    const counter = counterTileOf(window, given(window.counters[0]));
    expect([999, 1000, 1499, 1500, 1999].map((ns) => valueAt(counter, ns))).toEqual([undefined, 1, 1, 2, 2]);
  });
});

describe("the grid", () => {
  it("has pixels no coarser than the screen's, down to a nanosecond", () => {
    for (const span of [40, 1000, 123_456, 7e9]) {
      const level = levelOf({ begin: 0, end: span }, 1000);
      expect(2 ** level).toBeLessThanOrEqual(Math.max(span / 1000, 1));
      expect(2 ** (level + 1)).toBeGreaterThan(span / 1000);
    }
  });

  it("covers a view without gaps and overlaps, whatever is there", () => {
    const view = { begin: 3000, end: 9000 };
    const level = 1;
    expect(tilesIn(view, level, 1e6)).toEqual([2, 9]);
    const there = new Set(["1/3", "3/0", "0/9", "0/8", "4/0"]);
    const pieces = covering(view, level, 1e6, (at, index) => (there.has(`${at}/${index}`) ? `${at}/${index}` : undefined));
    for (const [index, piece] of pieces.entries()) {
      expect(piece.end).toBeGreaterThan(piece.begin);
      expect(piece.begin).toBe(pieces[index - 1]?.end ?? piece.begin);
    }
    expect(pieces.map((piece) => piece.tile)).toContain("1/3");
    // A coarser tile stands in where the level's own is not there, the nearest one first; then finer ones.
    expect(pieces.find(({ begin }) => begin === 2 * tileSpan(1))?.tile).toBe("3/0");
    expect(pieces.find(({ begin }) => begin === 4 * tileSpan(1))?.tile).toBe("4/0");
    const finer = covering({ begin: 4 * tileSpan(1), end: 5 * tileSpan(1) }, level, 1e6, (at, index) => (there.has(`${at}/${index}`) && at === 0 ? index : undefined));
    expect(finer.map((piece) => piece.tile)).toEqual([8, 9]);
  });
});

describe("the cache", () => {
  it("lets go of what was not looked at for longest", () => {
    const cache = new TileCache<Tile>(50, (one) => one.start.length);
    for (let index = 0; index < 10; index++) {
      cache.tick();
      cache.get(1, 0, 0); // is looked at again and again
      cache.set(1, 0, index, tile(1000, 1300, 2, 100, 60));
    }
    expect(cache.has(1, 0, 0)).toBe(true);
    expect(cache.has(1, 0, 1)).toBe(false);
    expect(cache.has(1, 0, 9)).toBe(true);
    expect(cache.get(2, 0, 9)).toBeUndefined();
    expect(cache.get(1, 1, 9)).toBeUndefined();
  });
});

describe("loading", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  interface Asked { readonly begin: number; readonly end: number; readonly pixels: number; readonly tracks: readonly number[] }

  function loader(fails = false): { readonly asked: Asked[]; readonly it: Loader; readonly failures: string[]; answer: () => Promise<void> } {
    const asked: Asked[] = [];
    const failures: string[] = [];
    const waiting: (() => void)[] = [];
    const ask = (begin: number, end: number, pixels: number, tracks: readonly number[]): Promise<Window> => {
      asked.push({ begin, end, pixels, tracks });
      return new Promise((resolve, reject) =>
        waiting.push(() => (fails ? reject(new Error("gone")) : resolve(windowOf(begin, end, tracks.map((id) => rowsOf(id, begin, end, 1, 100, 60)))))),
      );
    };
    const it = new Loader(1_000_000, [0], ask, () => undefined, (message) => failures.push(message));
    const answer = async (): Promise<void> => {
      waiting.splice(0).forEach((one) => one());
      await vi.advanceTimersByTimeAsync(0);
    };
    return { asked, it, failures, answer };
  }

  const VIEW = { begin: 0, end: 1000 };
  const NO_OVERVIEW = [VIEW, 1000, []] as const;

  it("asks for each tile once, for all its tracks together", async () => {
    const { asked, it: one, answer } = loader();
    one.want(VIEW, 1000, [1, 2], NO_OVERVIEW);
    one.want(VIEW, 1000, [1, 2], NO_OVERVIEW);
    expect(asked).toEqual([
      { begin: 0, end: TILE_PIXELS, pixels: TILE_PIXELS, tracks: [1, 2] },
      { begin: TILE_PIXELS, end: 2 * TILE_PIXELS, pixels: TILE_PIXELS, tracks: [1, 2] },
    ]);
    await answer();
    expect(one.tiles.get(2, 0, 1)?.start.length).toBeGreaterThan(0);
    expect(one.counters.get(0, 0, 1)?.value).toEqual([1, 2]);
    const before = asked.length;
    one.want(VIEW, 1000, [1, 2, 3], NO_OVERVIEW);
    expect(asked.slice(before).map(({ tracks }) => tracks)).toEqual([[3], [3]]);
  });

  it("goes on with what is probably seen next once all is there, and no sooner", async () => {
    const { asked, it: one, answer } = loader();
    one.want(VIEW, 1000, [1], NO_OVERVIEW);
    await answer();
    expect(asked).toHaveLength(2);
    one.want(VIEW, 1000, [1], NO_OVERVIEW);
    expect(asked.length).toBeGreaterThan(2);
    expect(given(asked[2]).begin).toBe(2 * TILE_PIXELS);
  });

  it("says what failed, and tries again a while later, not at each frame", async () => {
    const { asked, it: one, failures, answer } = loader(true);
    one.want(VIEW, 500, [1], NO_OVERVIEW);
    const first = asked.length;
    await answer();
    expect(failures).toContain("gone");
    one.want(VIEW, 500, [1], NO_OVERVIEW);
    expect(asked).toHaveLength(first);
    await vi.advanceTimersByTimeAsync(60_000);
    one.want(VIEW, 500, [1], NO_OVERVIEW);
    expect(asked.length).toBeGreaterThan(first);
  });
});

describe("lanes", () => {
  it("stand below each other, many other threads closed, and can be turned and filtered", () => {
    const lanes = lanesOf(head(), CHOICES);
    expect(lanes.map(({ title }) => title)).toEqual(["steps", "device 0, stream 7", "thread 1", "thread 3", "thread 4", "thread 5", "memory"]);
    expect(lanes.map(({ isOpen }) => isOpen)).toEqual([true, true, true, false, false, false, true]);
    lanes.forEach((lane, at) => expect(lane.y).toBeGreaterThanOrEqual(at === 0 ? 0 : given(lanes[at - 1]).y + given(lanes[at - 1]).height));
    expect(heightOf(lanes)).toBeGreaterThan(given(lanes.at(-1)).y + given(lanes.at(-1)).height);
    const turned = lanesOf(head(), { ...CHOICES, turned: new Set(["t3", "t1"]) });
    expect(turned.map(({ isOpen }) => isOpen)).toEqual([true, true, false, true, false, false, true]);
    expect(lanesOf(head(), { ...CHOICES, filter: "STREAM" }).map(({ title }) => title)).toEqual(["device 0, stream 7"]);
    expect(lanesOf(head(), { ...CHOICES, filter: "nothing" })).toEqual([]);
    expect(heightOf([])).toBe(0);
  });

  it("are found by height, with their rows", () => {
    const lanes = lanesOf(head(), { ...CHOICES, hasHeads: true });
    for (const lane of lanes) {
      expect(laneAt(lanes, lane.y + 1)).toBe(lane);
      if (lane.type === "track") {
        expect(rowAt(lane, lane.y + lane.head + lane.rowHeight / 2)).toBe(0);
        expect(rowAt(lane, lane.y + lane.height - 1)).toBe(lane.track.rows - 1);
        expect(rowAt(lane, lane.y + 1)).toBe(-1);
      }
    }
    expect(laneAt(lanes, -1)).toBeUndefined();
  });

  it("keep the steps at the top whatever is scrolled, above what is there", () => {
    const lanes = lanesOf(head(), CHOICES);
    for (const top of [0, 7, 400]) {
      const held = pinned(lanes, top);
      expect(held.map(({ title }) => title).sort()).toEqual(lanes.map(({ title }) => title).sort());
      expect(laneAt(held, top)).toMatchObject({ title: "steps", y: top });
    }
  });

  it("of the overview are the thread that trains and the streams", () => {
    expect(overviewOf(head()).map(({ id }) => id)).toEqual([1, 2]);
  });
});

describe("hits", () => {
  const lanes = lanesOf(head(), CHOICES);
  const one = tile(0, 1024, 3);
  const ground: Ground = {
    lanes,
    view: { begin: 0, end: 1000 },
    width: 1000,
    tiles: (track) => (track === 1 ? [{ tile: one, begin: 0, end: 1024 }] : []),
  };
  const lane = given(lanes.find(({ title }) => title === "thread 1"));
  const y = (row: number): number => lane.y + 18 * row + 9;

  it("are the slices below the pointer", () => {
    expect(hitAt(ground, 230, y(1))).toMatchObject({ track: 1, row: 1, start: 200, end: 260, slice: 2, count: 1 });
    expect(hitAt(ground, 230, y(0))).toMatchObject({ row: 0, slice: -1, count: 5 });
    expect(hitAt(ground, 285, y(1))).toBeUndefined();
    expect(hitAt(ground, 230, 5)).toBeUndefined(); // the steps have none
    expect(hitAt(ground, 230, 5000)).toBeUndefined();
  });

  it("lead to their neighbours, past joined ones", () => {
    const from = given(hitAt(ground, 230, y(1)));
    expect(beside(ground, from, "next")).toMatchObject({ row: 1, start: 300 });
    expect(beside(ground, from, "previous")).toMatchObject({ row: 1, start: 100 });
    expect(beside(ground, from, "below")).toMatchObject({ row: 2, start: 200 });
    expect(beside(ground, from, "above")).toBeUndefined();
    expect(beside(ground, given(hitAt(ground, 230, y(2))), "above")).toMatchObject({ row: 1, start: 200 });
    expect(beside(ground, { track: 99, row: 0, start: 0, end: 1 }, "next")).toBeUndefined();
    expect(middleOf(ground)).toBeUndefined(); // the first row has joined ones alone
  });
});

describe("names and colours", () => {
  it("are found whatever their case, each kept once", () => {
    const names = new Names();
    const [one, other] = [names.number("aten::MM"), names.number("gemm_64x64")];
    expect(names.number("aten::MM")).toBe(one);
    names.look("mm");
    expect([names.isFound(one), names.isFound(other)]).toEqual([true, true]);
    names.look("TEN");
    expect([names.isFound(one), names.isFound(other)]).toEqual([true, false]);
    names.look("MM", new Set(["gemm_64x64"]));
    names.look("x", new Set(["aten::MM"]));
    expect([names.isFound(one), names.isFound(other)]).toEqual([true, true]);
    names.look("y", new Set(["aten::MM"]));
    expect([names.isFound(one), names.isFound(other)]).toEqual([true, false]);
    expect(names.hashes[other]).toBe(names.hashes[names.number("gemm_128x32")]);
  });

  it("follow kind, line or name", () => {
    expect(fillOf("kernel", "a", 1, 0, "line")).not.toBe(fillOf("kernel", "a", 1, 1, "line"));
    expect(fillOf("kernel", "a", 1, 0, "kind")).toBe(fillOf("kernel", "b", 1, 5, "kind"));
    expect(fillOf("kernel", "a", 1, 0, "name")).toBe(fillOf("kernel", "a", 1, 7, "name"));
    expect(fillOf("operator", "a", 1, 0, "line")).toBe(fillOf("operator", "a", 1, 4, "kind"));
    expect(fillOf("phase", "forward", 1, -1, "kind")).not.toBe(fillOf("phase", "backward", 1, -1, "kind"));
  });

  it("of a line are those of all its functions", () => {
    expect([...placesAt(head(), "a.py", 1)]).toEqual([0, 1]);
    expect([...placesAt(head(), "b.py", 1)]).toEqual([]);
  });

  it("are cut to the width that there is", () => {
    const labels = new Labels((text) => text.length * 10);
    expect(labels.fitted("forward", 70)).toBe("forward");
    expect(labels.fitted("forward", 69)).toBe("forwa…");
    expect(labels.fitted("forward", 29)).toBe("");
    expect(labels.fitted("x".repeat(10_000), 100)).toHaveLength(10);
    expect(labels.fitted("😀😀😀😀", 45)).toBe("😀…"); // no half characters
  });
});
