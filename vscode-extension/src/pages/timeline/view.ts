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
