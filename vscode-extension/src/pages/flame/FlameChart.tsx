/** The chart itself, drawn by d3-flame-graph. */

import { select } from "d3-selection";
import flamegraph, { type FlameGraph, type PlacedNode } from "d3-flame-graph";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useWidth } from "../parts/browser";
import type { CodePlace } from "../source/source";
import { duration, share, signed, sumWords } from "../words";
import { boxColour, change, changeColour, kindColour, leadsTo, type Box } from "./boxes";

const MARKED = "#c586ff";

/** What colours tell: which boxes have time of their own, what has time where callers hang below it, or what changed. */
export type Kind = "down" | "up" | "difference";

interface Props {
  readonly root: Box;
  readonly of: Kind;
  readonly search: string;
  /** The line whose boxes are marked, and which the chart is zoomed to. */
  readonly marked: CodePlace | undefined;
  /** A box was clicked, which leads to a place. */
  readonly chosen: (box: Box, place: Box | undefined) => void;
  /** With Ctrl or ⌘. */
  readonly opened: (place: CodePlace) => void;
  /** Changes when the zoom is to be reset. */
  readonly reset: number;
}

export function FlameChart({ root, of, search, marked, chosen, opened, reset }: Props): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const details = useRef<HTMLParagraphElement>(null);
  const chart = useRef<FlameGraph<Box>>();
  const isZooming = useRef(false);
  const [width, setWidth] = useState(0);
  useWidth(element, setWidth);
  useEffect(() => {
    const [place, words] = [element.current, details.current];
    if (place === null || words === null || width === 0) {
      return undefined;
    }
    const drawn = flamegraph<Box>()
      .width(width)
      .cellHeight(20)
      .minFrameSize(1)
      .transitionDuration(window.matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 150)
      .inverted(true)
      .sort((one, other) => other.data.value - one.data.value)
      .setLabelHandler(({ data }) => label(data, root, of))
      .setColorMapper((node) => colour(node, root, of))
      .setSearchMatch((node, term) => `${node.data.name} ${node.data.place}`.toLowerCase().includes(term.toLowerCase()))
      .setSearchHandler((found) => {
        words.textContent = `${found.length} boxes, ${sumWords(outerSum(found), root.value)}`;
      })
      .setDetailsElement(words)
      .onClick((node) => {
        if (!isZooming.current) {
          chosen(node.data, placeOf(node));
        }
      });
    chart.current = drawn;
    // The library writes into its data: it gets a copy.
    select<HTMLElement, Box>(place).datum(structuredClone(root)).call(drawn);
    return () => {
      drawn.destroy();
      place.replaceChildren();
      chart.current = undefined;
    };
  }, [root, of, width]);
  useEffect(() => {
    if (search !== "") {
      chart.current?.search(search);
    } else {
      chart.current?.clear();
      if (details.current !== null) {
        details.current.textContent = "";
      }
      if (marked !== undefined && element.current !== null && chart.current !== undefined && details.current !== null) {
        isZooming.current = true; // the library takes the zoom for a click
        details.current.textContent = mark(chart.current, element.current, marked);
        isZooming.current = false;
      }
    }
  }, [root, of, width, search, marked?.file, marked?.line]);
  useEffect(() => {
    if (reset > 0) {
      isZooming.current = true;
      chart.current?.resetZoom();
      isZooming.current = false;
    }
  }, [reset]);
  // Before the library hears of it, which zooms at any click.
  const clicked = (event: MouseEvent): void => {
    const box = event.target instanceof Element ? event.target.closest("g.frame") : null;
    if (box !== null && (event.ctrlKey || event.metaKey)) {
      event.stopPropagation();
      const place = placeOf(select<Element, PlacedNode<Box>>(box).datum());
      if (place !== undefined) {
        opened(place);
      }
    }
  };
  return (
    <>
      <p class="flamedetails" ref={details} aria-live="polite" />
      <div class="flamechart" ref={element} role="img" aria-label="Flame graph" onClickCapture={clicked} />
    </>
  );
}

function placeOf(node: PlacedNode<Box>): Box | undefined {
  return leadsTo(node.ancestors().map(({ data }) => data));
}

function colour(node: PlacedNode<Box>, root: Box, of: Kind): string {
  if (node.highlight === true) {
    return MARKED;
  }
  switch (of) {
    case "difference":
      return changeColour(change(node.data, root));
    case "up": {
      const isOwn = node.ancestors().length === 2; // the box itself and the root
      const deep = isOwn ? Math.min(1, (3 * node.data.value) / Math.max(root.value, 1)) : 0;
      return node.data.frame < 0 ? boxColour(node.data, root.value) : kindColour(node.data.kind, deep);
    }
    case "down":
      return boxColour(node.data, root.value);
  }
}

function label(box: Box, root: Box, of: Kind): string {
  const words = `${box.name} · ${duration(box.value)} (${share(root.value > 0 ? box.value / root.value : 0)})`;
  return of === "difference" ? `${words} · ${signed(box.value - box.before)} of ${duration(box.before)}` : words;
}

/** Marks all boxes of a line, and zooms to what holds them all; answers what was found. */
function mark(chart: FlameGraph<Box>, element: HTMLElement, { file, line }: CodePlace): string {
  const root = select<HTMLElement, PlacedNode<Box>>(element).datum();
  const boxes: PlacedNode<Box>[] = [];
  root.each((node) => {
    node.highlight = node.data.file === file && node.data.line === line;
    if (node.highlight) {
      boxes.push(node);
    }
  });
  chart.resetZoom(); // a box that is hidden now cannot be zoomed to
  chart.zoomTo(boxes.reduce(holding, boxes[0] ?? root));
  const [first] = boxes;
  return first === undefined
    ? "The line has no time of its own or of its calls in this graph."
    : `${first.data.name} · ${boxes.length === 1 ? "1 box" : `${boxes.length} boxes`} · ${sumWords(outerSum(boxes), root.data.value)}`;
}

/** The sum over boxes; one inside another one is not counted again. */
function outerSum(boxes: readonly PlacedNode<Box>[]): number {
  const found = new Set(boxes);
  const outer = boxes.filter((box) => !box.ancestors().slice(1).some((above) => found.has(above)));
  return outer.reduce((whole, { data }) => whole + data.value, 0);
}

/** The innermost box that holds both. */
function holding(one: PlacedNode<Box>, other: PlacedNode<Box>): PlacedNode<Box> {
  const above = new Set(other.ancestors());
  return one.ancestors().find((node) => above.has(node)) ?? one;
}
