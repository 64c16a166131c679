/** Moves the view: at once where motion is to be reduced, else towards its goal frame by frame. */

import { between, clamped, isNear, LEAST_SPAN_NS, panned, spanOf, toNs, type View } from "./view";

/** After so long a third of the way is left. */
const PACE_MS = 55;
/** A key that is held begins to move on after this time. */
const HOLD_MS = 220;
/** Screens a second, and doublings a second. */
const PAN_RATE = 0.9;
const ZOOM_RATE = 3;
const LONGEST_FRAME_MS = 50;

export type Held = "in" | "out" | "left" | "right";

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
