/** Where each track and counter stands below the others, in pixels from the top of all. */

import type { Counter, Timeline, Track } from "../contract";

export type Lane = TrackLane | CounterLane;

interface Placed {
  readonly title: string;
  /** Of what can be opened and closed. */
  readonly key: string;
  readonly isOpen: boolean;
  readonly y: number;
  readonly height: number;
  /** Space above what is drawn, for the title where it has no room at the left. */
  readonly head: number;
}

export interface TrackLane extends Placed {
  readonly type: "track";
  readonly track: Track;
  readonly rowHeight: number;
}

export interface CounterLane extends Placed {
  readonly type: "counter";
  readonly counter: Counter;
}

export interface Choices {
  /** Keys of lanes whose state is not as at the beginning. */
  readonly turned: ReadonlySet<string>;
  /** A part of the titles that are shown; "" for all. */
  readonly filter: string;
  readonly hasHeads: boolean;
}

export const ROW = 18;
const CLOSED = 22;
const CHART = 40;
const HEAD = 17;
const GAP = 5;
/** More threads beside the one that trains begin closed. */
const MANY = 2;
const OPEN_COUNTERS = 3;

function trackKey(track: Track): string {
  return `t${track.id}`;
}

/** All lanes in their order: the steps, the streams, the thread that trains, other threads, then the counters. */
export function lanesOf(of: Timeline, choices: Choices): readonly Lane[] {
  const isShown = (title: string): boolean => title.toLowerCase().includes(choices.filter.trim().toLowerCase());
  const others = of.tracks.filter(isOther);
  const lanes: Lane[] = [];
  let y = 0;
  const head = choices.hasHeads ? HEAD : 0;
  const add = (track: Track): void => {
    const key = trackKey(track);
    const begins = !isOther(track) || others.length <= MANY;
    const isOpen = begins !== choices.turned.has(key);
    const rows = Math.max(track.rows, 1);
    const height = isOpen || rows === 1 ? rows * ROW : CLOSED;
    lanes.push({ type: "track", track, key, title: track.title, isOpen, y, height: head + height, head, rowHeight: height / rows });
    y += head + height + GAP;
  };
  const addCounter = (counter: Counter, at: number): void => {
    const key = `c${counter.id}`;
    const isOpen = at < OPEN_COUNTERS !== choices.turned.has(key);
    const height = isOpen ? CHART : 12;
    lanes.push({ type: "counter", counter, key, title: counter.title, isOpen, y, height: head + height, head });
    y += head + height + GAP;
  };
  of.tracks.filter((track) => track.kind !== "thread" && isShown(track.title)).forEach(add);
  of.tracks.filter((track) => track.isTraining && isShown(track.title)).forEach(add);
  others.filter((track) => isShown(track.title)).forEach(add);
  of.counters.filter((counter) => isShown(counter.title)).forEach(addCounter);
  return lanes;
}

/** A thread that does not train. */
function isOther({ kind, isTraining }: Track): boolean {
  return kind === "thread" && !isTraining;
}

export function heightOf(lanes: readonly Lane[]): number {
  const last = lanes.at(-1);
  return last === undefined ? 0 : last.y + last.height + GAP;
}

/** The steps stay at the top whatever is scrolled, above all else: the last of the lanes. */
export function pinned(lanes: readonly Lane[], top: number): readonly Lane[] {
  const steps = lanes.find((lane) => lane.type === "track" && lane.track.kind === "steps");
  return steps === undefined ? lanes : [...lanes.filter((lane) => lane !== steps), { ...steps, y: Math.max(steps.y, top) }];
}

/** How far down the pinned steps reach. */
export function pinnedHeight(lanes: readonly Lane[]): number {
  const steps = lanes.find((lane) => lane.type === "track" && lane.track.kind === "steps");
  return steps === undefined ? 0 : steps.height + GAP;
}

/** The lanes that are seen between two heights. */
export function seen(lanes: readonly Lane[], top: number, bottom: number): readonly Lane[] {
  return lanes.filter((lane) => lane.y + lane.height > top && lane.y < bottom);
}

/** The lane at a height: of two, the one that is drawn above. */
export function laneAt(lanes: readonly Lane[], y: number): Lane | undefined {
  return lanes.findLast((lane) => y >= lane.y && y < lane.y + lane.height);
}

/** The row of a track at a height; -1 above the first. */
export function rowAt(lane: TrackLane, y: number): number {
  const row = Math.floor((y - lane.y - lane.head) / lane.rowHeight);
  return row >= 0 && row < lane.track.rows ? row : -1;
}

/** What the overview shows: the steps, the thread that trains, the first streams. */
export function overviewOf(of: Timeline): readonly Track[] {
  const streams = of.tracks.filter((track) => track.kind === "stream").slice(0, 8);
  const training = of.tracks.filter((track) => track.isTraining);
  const threads = training.length > 0 ? training : of.tracks.filter((track) => track.kind === "thread").slice(0, 1);
  return [...threads, ...streams];
}
