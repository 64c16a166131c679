/** The stretch of time that is seen, and how it moves. Times are nanoseconds from the timeline's begin. */

export interface View {
  readonly begin: number;
  readonly end: number;
}

/** As near as one can look: a nanosecond is wide enough to be told from its neighbours. */
export const LEAST_SPAN_NS = 40;
/** Free space beside a slice that fills the view, as a part of its length. */
const MARGIN = 0.08;

export function spanOf({ begin, end }: View): number {
  return end - begin;
}

/** The nearest view within [0, whole], not narrower than can be looked at. */
export function clamped({ begin, end }: View, whole: number): View {
  const span = Math.min(Math.max(end - begin, LEAST_SPAN_NS), Math.max(whole, LEAST_SPAN_NS));
  const least = Math.min(Math.max(begin, 0), Math.max(whole - span, 0));
  return { begin: least, end: least + span };
}

/** Zoomed so that `at` stays where it is; a `factor` above 1 shows more time. */
export function zoomed(view: View, factor: number, at: number, whole: number): View {
  const span = Math.min(Math.max(spanOf(view) * factor, LEAST_SPAN_NS), Math.max(whole, LEAST_SPAN_NS));
  const place = (at - view.begin) / spanOf(view);
  return clamped({ begin: at - place * span, end: at + (1 - place) * span }, whole);
}

export function panned(view: View, byNs: number, whole: number): View {
  return clamped({ begin: view.begin + byNs, end: view.end + byNs }, whole);
}

/** A stretch with some space beside it, a part of its length. */
export function around(begin: number, end: number, whole: number, margin = MARGIN): View {
  const space = Math.max((end - begin) * margin, LEAST_SPAN_NS / 4);
  return clamped({ begin: begin - space, end: end + space }, whole);
}

/** The view moved so that a stretch is in it; as it is where it is in it already. Longer ones fill it. */
export function revealing(view: View, begin: number, end: number, whole: number): View {
  if (begin >= view.begin && end <= view.end && end - begin > spanOf(view) / 400) {
    return view;
  }
  if (end - begin > spanOf(view) * 0.8 || end - begin < spanOf(view) / 400) {
    const space = (end - begin) * 3;
    return clamped({ begin: begin - space, end: end + space }, whole);
  }
  const middle = (begin + end) / 2;
  return clamped({ begin: middle - spanOf(view) / 2, end: middle + spanOf(view) / 2 }, whole);
}

/** On the way from one view to another; what a zoom holds in place stays in place on the way. */
export function between(from: View, to: View, part: number): View {
  return { begin: from.begin + (to.begin - from.begin) * part, end: from.end + (to.end - from.end) * part };
}

/** Whether two views look the same on a screen so many pixels wide. */
export function isNear(one: View, other: View, pixels: number): boolean {
  const pixel = spanOf(other) / pixels / 4;
  return Math.abs(one.begin - other.begin) < pixel && Math.abs(one.end - other.end) < pixel;
}

export function toX(ns: number, view: View, width: number): number {
  return ((ns - view.begin) / spanOf(view)) * width;
}

export function toNs(x: number, view: View, width: number): number {
  return view.begin + (x / width) * spanOf(view);
}

/** After so long a third of the way is left. */
const PACE_MS = 55;
/** A key that is held begins to move on after this time. */
const HOLD_MS = 220;
/** Screens a second, and doublings a second. */
const PAN_RATE = 0.9;
const ZOOM_RATE = 3;
const LONGEST_FRAME_MS = 50;

export type Held = "in" | "out" | "left" | "right";

/** Moves the view: at once where motion is to be reduced, else towards its goal frame by frame. */
export class Motion {
  view: View;
  goal: View;
  private last: number | undefined;
  private readonly held = new Map<Held, number>();
  private readonly reduced = window.matchMedia("(prefers-reduced-motion: reduce)");

  constructor(
    view: View,
    private readonly whole: number,
    private readonly moved: () => void,
  ) {
    this.view = clamped(view, whole);
    this.goal = this.view;
  }

  /** Goes to a view; at once if it is dragged there. */
  go(view: View, isAtOnce = false): void {
    this.goal = clamped(view, this.whole);
    if (isAtOnce || this.reduced.matches) {
      this.view = this.goal;
    }
    this.moved();
  }

  /** Zooms so that what is at a part of the width stays there; a factor above 1 shows more time. */
  zoom(factor: number, place: number): void {
    const at = toNs(place, this.view, 1);
    const span = Math.min(Math.max(spanOf(this.goal) * factor, LEAST_SPAN_NS), Math.max(this.whole, LEAST_SPAN_NS));
    this.go({ begin: at - place * span, end: at + (1 - place) * span });
  }

  /** Pans by a part of the width. */
  pan(part: number, isAtOnce = false): void {
    this.go(panned(this.goal, part * spanOf(this.goal), this.whole), isAtOnce);
  }

  hold(key: Held): void {
    if (!this.held.has(key)) {
      this.held.set(key, performance.now());
      this.moved();
    }
  }

  release(key?: Held): void {
    if (key === undefined) {
      this.held.clear();
    } else {
      this.held.delete(key);
    }
  }

  /** Moves on; whether there is more of the way. `width` is that of the screen in pixels. */
  advance(now: number, width: number, place = 0.5): boolean {
    const passed = this.last === undefined ? 16 : Math.min(now - this.last, LONGEST_FRAME_MS);
    for (const [key, since] of this.held) {
      if (now - since > HOLD_MS) {
        const seconds = passed / 1000;
        this.move(key, 2 ** (ZOOM_RATE * seconds), PAN_RATE * seconds, place);
      }
    }
    if (this.view !== this.goal) {
      const isThere = this.reduced.matches || isNear(this.view, this.goal, width);
      this.view = isThere ? this.goal : between(this.view, this.goal, 1 - Math.exp(-passed / PACE_MS));
    }
    const isMoving = this.view !== this.goal || this.held.size > 0;
    this.last = isMoving ? now : undefined;
    return isMoving;
  }

  /** Moves as a key says: zooms by a factor around a part of the width, or pans by a part of the width. */
  move(key: Held, factor: number, part: number, place: number): void {
    switch (key) {
      case "in":
        this.zoom(1 / factor, place);
        break;
      case "out":
        this.zoom(factor, place);
        break;
      case "left":
        this.pan(-part);
        break;
      case "right":
        this.pan(part);
        break;
    }
  }
}
