/** Answers about a timeline that never was: tracks with rows of slices at regular times. */

import type { Timeline, Track, TrackWindow, Window } from "../src/pages/contract";

export function track(id: number, more: Partial<Track> = {}): Track {
  return { id, kind: "thread", title: `thread ${id}`, rows: 2, slices: 100, device: -1, isTraining: false, ...more };
}

export function head(more: Partial<Timeline> = {}): Timeline {
  return {
    endNs: 1_000_000,
    workBeginNs: 0,
    workEndNs: 1_000_000,
    beginEpochNs: "0",
    tracks: [
      track(0, { kind: "steps", title: "steps" }),
      track(1, { isTraining: true, rows: 3 }),
      track(2, { kind: "stream", title: "device 0, stream 7", rows: 1, device: 0 }),
      track(3),
      track(4),
      track(5),
    ],
    counters: [{ id: 0, title: "memory", unit: "bytes", largest: 100, device: 0 }],
    kinds: ["step", "phase", "operator", "kernel"],
    places: [
      { file: "a.py", line: 1, function: "f", title: "a.py:1 f" },
      { file: "a.py", line: 1, function: "g", title: "a.py:1 g" },
      { file: "a.py", line: 2, function: "f", title: "a.py:2 f" },
    ],
    slices: 600,
    ...more,
  };
}

/** In each row a slice of `length` every `every` nanoseconds; those of the first row are joined. */
export function rowsOf(id: number, begin: number, end: number, rows: number, every: number, length: number): TrackWindow {
  const slices = Array.from({ length: rows }, (_, row) => {
    const first = Math.ceil((begin - length + 1) / every);
    const count = Math.max(Math.ceil(end / every) - first, 0);
    return Array.from({ length: count }, (__, at) => ({ row, start: (first + at) * every, number: first + at }));
  }).flat();
  return {
    id,
    start: slices.map(({ start }) => start),
    end: slices.map(({ start }) => start + length),
    row: slices.map(({ row }) => row),
    name: slices.map(({ number }) => Math.abs(number) % 2),
    kind: slices.map(() => 2),
    place: slices.map(() => -1),
    slice: slices.map(({ row, number }) => (row === 0 ? -1 : number)),
    count: slices.map(({ row }) => (row === 0 ? 5 : 1)),
    busy: slices.map(() => length),
  };
}

export function windowOf(begin: number, end: number, tracks: readonly TrackWindow[]): Window {
  const at = [begin, begin + (end - begin) / 2];
  return { beginNs: begin, endNs: end, resolutionNs: 1, tracks, counters: [{ id: 0, at, value: [1, 2] }], names: ["aten::mm", "aten::add"] };
}

/** What has to be there. */
export function given<T>(value: T | undefined): T {
  if (value === undefined) {
    throw new Error("it is not there");
  }
  return value;
}
