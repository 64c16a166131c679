/** Wheel, pointers and pinches become moves of the view, marks and clicks. */

import type { Hit } from "./hit";
import { brushOf } from "./overview";
import type { Stage } from "./stage";
import { spanOf, toNs, type View } from "./view";

interface Meant {
  hovered(hit: Hit | undefined, x: number, y: number): void;
  clicked(hit: Hit | undefined): void;
  fitted(hit: Hit): void;
  marked(stretch: View | undefined): void;
  /** Whether a drag marks a stretch without the shift key. */
  marksByDrag(): boolean;
}

/** Pixels that a click may move by. */
const STILL = 4;
const WHEEL = 0.0022;
/** Browsers report a pinch as a wheel with the control key, in small steps. */
const PINCH = 0.011;
const LINE = 18;
const PAGE = 400;

interface Pressed {
  x: number;
  y: number;
  readonly beginX: number;
  readonly beginY: number;
  readonly mode: "pan" | "mark";
  isMoved: boolean;
}

/** Listens on the lanes; the answer ends it. */
export function listenLanes(stage: Stage, area: HTMLElement, canvas: HTMLElement, meant: Meant): () => void {
  const pressed = new Map<number, Pressed>();
  let pinch: { readonly apart: number; readonly middle: number } | undefined;
  const placeOf = (event: MouseEvent): readonly [number, number] => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const stretchTo = (from: number, to: number): View => {
    const [one, other] = [from, to].map((x) => Math.round(Math.min(Math.max(toNs(x, stage.motion.view, stage.width), 0), stage.whole))) as [number, number];
    return { begin: Math.min(one, other), end: Math.max(one, other) };
  };

  const wheel = (event: WheelEvent): void => {
    const [x] = placeOf(event);
    if ((x < 0 && !event.ctrlKey) || event.altKey) {
      return; // over the titles it scrolls
    }
    event.preventDefault();
    const unit = event.deltaMode === 1 ? LINE : event.deltaMode === 2 ? PAGE : 1;
    const [across, down] = [event.deltaX * unit, event.deltaY * unit];
    if (!event.ctrlKey && !event.metaKey && (event.shiftKey || Math.abs(across) > Math.abs(down))) {
      stage.motion.pan((across === 0 ? down : across) / stage.width, true);
    } else {
      const speed = event.ctrlKey && Math.abs(down) < 50 ? PINCH : WHEEL;
      stage.motion.zoom(Math.exp(Math.min(Math.max(down * speed, -1), 1)), Math.min(Math.max(x / stage.width, 0), 1));
    }
    meant.hovered(undefined, 0, 0);
  };
  const down = (event: PointerEvent): void => {
    const [x, y] = placeOf(event);
    if (event.button !== 0 || x < 0 || x > stage.width || (event.target as Element).closest("button") !== null) {
      return;
    }
    area.setPointerCapture(event.pointerId);
    const mode = event.shiftKey || meant.marksByDrag() ? "mark" : "pan";
    pressed.set(event.pointerId, { x, y, beginX: x, beginY: y, mode, isMoved: false });
    pinch = pressed.size === 2 ? pinchOf([...pressed.values()]) : undefined;
  };
  const move = (event: PointerEvent): void => {
    const [x, y] = placeOf(event);
    const press = pressed.get(event.pointerId);
    if (press === undefined) {
      const isIn = x >= 0 && x <= stage.width && y >= 0 && y <= stage.height;
      meant.hovered(stage.point(isIn ? x : undefined, y), x, y);
      return;
    }
    const [acrossBy, downBy] = [x - press.x, y - press.y];
    [press.x, press.y] = [x, y];
    if (pinch !== undefined && pressed.size === 2) {
      const next = pinchOf([...pressed.values()]);
      stage.motion.zoom(pinch.apart / Math.max(next.apart, 1), next.middle / stage.width);
      stage.motion.pan((pinch.middle - next.middle) / stage.width, true);
      pinch = next;
      pressed.forEach((one) => (one.isMoved = true));
      return;
    }
    press.isMoved ||= Math.abs(x - press.beginX) > STILL || Math.abs(y - press.beginY) > STILL;
    if (!press.isMoved) {
      return;
    }
    if (press.mode === "mark") {
      stage.mark(stretchTo(press.beginX, x));
    } else {
      stage.motion.pan(-acrossBy / stage.width, true);
      area.scrollTop -= downBy;
    }
    stage.point(undefined);
    meant.hovered(undefined, 0, 0);
  };
  const up = (event: PointerEvent): void => {
    const press = pressed.get(event.pointerId);
    pressed.delete(event.pointerId);
    pinch = undefined;
    if (press === undefined || event.type === "pointercancel") {
      stage.mark(undefined);
    } else if (!press.isMoved) {
      meant.clicked(stage.point(press.x, press.y));
    } else if (press.mode === "mark") {
      stage.mark(undefined);
      meant.marked(stretchTo(press.beginX, press.x));
    }
  };
  const leave = (): void => meant.hovered(stage.point(undefined), 0, 0);
  const twice = (event: MouseEvent): void => {
    const [x, y] = placeOf(event);
    const hit = x < 0 ? undefined : stage.point(x, y);
    if (hit !== undefined) {
      meant.fitted(hit);
    }
  };
  return listening(area, { wheel, pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, pointerleave: leave, dblclick: twice });
}

function pinchOf(pressed: readonly Pressed[]): { readonly apart: number; readonly middle: number } {
  const [one, other] = pressed;
  return { apart: Math.abs((one?.x ?? 0) - (other?.x ?? 0)), middle: ((one?.x ?? 0) + (other?.x ?? 0)) / 2 };
}

/** Pixels beside the brush's edge that take it. */
const EDGE = 5;

/** Listens on the overview: its brush is moved, its edges too, elsewhere a new one is drawn; the answer ends it. */
export function listenOverview(stage: Stage, canvas: HTMLElement): () => void {
  let drag: ((x: number) => void) | undefined;
  const xOf = (event: PointerEvent): number => Math.min(Math.max(event.clientX - canvas.getBoundingClientRect().left, 0), stage.width);
  const nsOf = (x: number): number => (x / stage.width) * stage.whole;
  const down = (event: PointerEvent): void => {
    if (event.button !== 0) {
      return;
    }
    canvas.setPointerCapture(event.pointerId);
    const [x, { goal }] = [xOf(event), stage.motion];
    const [from, to] = brushOf(goal, stage.whole, stage.width);
    const isWhole = spanOf(goal) > stage.whole * 0.999;
    const go = (begin: number, end: number): void => stage.motion.go({ begin: Math.min(begin, end), end: Math.max(begin, end) }, true);
    if (!isWhole && Math.abs(x - from) < EDGE) {
      drag = (at) => go(nsOf(at), goal.end);
    } else if (!isWhole && Math.abs(x - to) < EDGE) {
      drag = (at) => go(goal.begin, nsOf(at));
    } else if (!isWhole && x > from && x < to) {
      drag = (at) => go(goal.begin + nsOf(at - x), goal.end + nsOf(at - x));
    } else {
      const half = spanOf(goal) / 2;
      drag = (at) => (Math.abs(at - x) > STILL ? go(nsOf(x), nsOf(at)) : isWhole || go(nsOf(x) - half, nsOf(x) + half));
      drag(x);
    }
  };
  const move = (event: PointerEvent): void => drag?.(xOf(event));
  const up = (): void => (drag = undefined);
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const place = (nsOf(event.clientX - canvas.getBoundingClientRect().left) - stage.motion.view.begin) / spanOf(stage.motion.view);
    stage.motion.zoom(Math.exp(Math.min(Math.max(event.deltaY * WHEEL, -1), 1)), Math.min(Math.max(place, 0), 1));
  };
  return listening(canvas, { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, wheel });
}

type Listeners = { readonly [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };

function listening(element: HTMLElement, listeners: Listeners): () => void {
  const all = Object.entries(listeners) as [string, EventListener][];
  all.forEach(([name, listener]) => element.addEventListener(name, listener, { passive: false }));
  return () => all.forEach(([name, listener]) => element.removeEventListener(name, listener));
}
