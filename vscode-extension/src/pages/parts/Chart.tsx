/** Lines over time, drawn by uPlot: drag to zoom, double-click for all, a cursor that mouse and arrow keys move. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { incrementsWithin, placeOf, type Window } from "./chartScale";
import { drawMarks, nameBands, shadeBands, type Band, type Mark } from "./chartDrawing";
import { colourOf, useThemeVersion } from "./browser";
import "uplot/dist/uPlot.min.css";
import "./chart.css";

export type { Band, Mark } from "./chartDrawing";

export interface Series {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** A CSS variable: `--tone0`. */
  readonly colour: string;
  readonly isFilled?: boolean;
  readonly isDashed?: boolean;
}

interface Props {
  /** What it shows, for those who do not see it. */
  readonly label: string;
  readonly at: readonly number[];
  readonly series: readonly Series[];
  /** All that can be shown. */
  readonly whole: Window;
  /** What is shown; all without. */
  readonly window?: Window | undefined;
  readonly height?: number;
  readonly marks?: readonly Mark[];
  readonly bands?: readonly Band[];
  readonly words: (value: number) => string;
  readonly atWords: (at: number) => string;
  /** Words of the marks of the axis along the bottom, where they are others. */
  readonly axisWords?: (at: number) => string;
  /** Distances between the marks of the axis of values: powers of two for bytes. */
  readonly base?: 2 | 10;
  /** Whether the axis along the bottom counts something: marks stand at whole numbers alone. */
  readonly isCounted?: boolean;
  readonly onWindow?: (window: Window | undefined) => void;
  /** Where the cursor rests; undefined where it has left. */
  readonly onRest?: (at: number | undefined) => void;
  readonly onPick?: (at: number) => void;
}

const REST_MS = 140;
const CLICK_PX = 4;

export function Chart(props: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const latest = useRef(props);
  latest.current = props;
  const theme = useThemeVersion();
  const [cursor, setCursor] = useState<number | undefined>(undefined);
  const shape = props.series.map(({ label, colour }) => `${label} ${colour}`).join();
  useEffect(() => {
    const element = box.current;
    if (element === null) {
      return;
    }
    const made = new uPlot(optionsOf(element, latest, setCursor), dataOf(latest.current), element);
    plot.current = made;
    show(made, latest.current);
    const size = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: latest.current.height ?? 260 }));
    size.observe(element);
    return () => {
      size.disconnect();
      made.destroy();
      plot.current = undefined;
    };
    // `latest` has what changes without a new plot.
  }, [theme, shape]);
  useEffect(() => {
    if (plot.current !== undefined) {
      plot.current.setData(dataOf(props), false);
      show(plot.current, props);
    }
  }, [props.at, props.series, props.window?.[0], props.window?.[1], props.whole[0], props.whole[1], props.marks]);
  useEffect(() => {
    const rested = setTimeout(() => latest.current.onRest?.(cursor), REST_MS);
    return () => clearTimeout(rested);
  }, [cursor]);
  return (
    <figure class="chart">
      <figcaption>
        <ul class="legend">
          {props.series.map((one) => (
            <li key={one.label}>
              <Swatch colour={one.colour} isDashed={one.isDashed === true} />
              {one.label} {cursor !== undefined && <strong>{valueAt(props, one, cursor)}</strong>}
            </li>
          ))}
          {cursor !== undefined && <li class="muted">{props.atWords(cursor)}</li>}
        </ul>
        {props.window !== undefined && (
          <button type="button" onClick={() => props.onWindow?.(undefined)}>
            Show all
          </button>
        )}
      </figcaption>
      <div
        ref={box}
        class="plot"
        tabIndex={0}
        role="img"
        aria-label={`${props.label}${cursor === undefined ? "" : `; ${props.atWords(cursor)}: ${props.series.map((one) => `${one.label} ${valueAt(props, one, cursor)}`).join(", ")}`}`}
        onKeyDown={(event) => plot.current !== undefined && pressed(event, plot.current, latest.current)}
      />
    </figure>
  );
}

function Swatch({ colour, isDashed }: { readonly colour: string; readonly isDashed: boolean }): JSX.Element {
  return <span class={`swatch ${isDashed ? "dashed" : ""}`} style={{ "--tone": `var(${colour})` }} />;
}

function valueAt({ at, words }: Props, series: Series, cursor: number): string {
  const value = series.values[placeOf(at, cursor)];
  return value === null || value === undefined ? "" : words(value);
}

function dataOf({ at, series }: Props): uPlot.AlignedData {
  return [[...at], ...series.map(({ values }) => [...values])] as uPlot.AlignedData;
}

function show(plot: uPlot, { window, whole }: Props): void {
  const [min, max] = window ?? whole;
  plot.batch(() => plot.setScale("x", { min, max: Math.max(max, min + 1) }));
}

function optionsOf(element: HTMLElement, latest: { readonly current: Props }, setCursor: (at: number | undefined) => void): uPlot.Options {
  const colour = (name: string): string => colourOf(element, name);
  const font = `11px ${colour("--font")}`;
  const axis = { stroke: colour("--muted"), font, grid: { stroke: colour("--border"), width: 1 }, ticks: { show: false } };
  const stepped = uPlot.paths.stepped?.({ align: 1 });
  const { base = 10 } = latest.current;
  let [pressedAt, isInside] = [Number.NaN, false];
  return {
    width: Math.max(element.clientWidth, 50),
    height: latest.current.height ?? 260,
    legend: { show: false },
    padding: [14, 8, 0, 0],
    scales: { x: { time: false, auto: false }, y: { range: (_, __, max) => [0, Math.max(max * 1.15, 1)] } },
    axes: [
      { ...axis, size: 26, space: 90, ...(latest.current.isCounted === true ? { incrs: incrementsWithin(10) } : {}), values: (_, splits) => splits.map((at) => (latest.current.axisWords ?? latest.current.atWords)(at)) },
      { ...axis, size: 62, space: 34, incrs: incrementsWithin(base), values: (_, splits) => splits.map((value) => (value === 0 ? "0" : latest.current.words(value))) },
    ],
    cursor: {
      y: false,
      points: { show: false }, // they would stand at the next event, not at the moment
      drag: { x: true, y: false, setScale: false, dist: CLICK_PX },
      bind: { dblclick: () => () => (latest.current.onWindow?.(undefined), null) },
    },
    series: [
      {},
      ...latest.current.series.map((one): uPlot.Series => ({
        label: one.label,
        stroke: colour(one.colour),
        width: 1.5,
        ...(stepped === undefined ? {} : { paths: stepped }),
        points: { show: false },
        ...(one.isDashed === true ? { dash: [5, 4] } : {}),
        ...(one.isFilled === true ? { fill: `color-mix(in srgb, ${colour(one.colour)} 16%, transparent)` } : {}),
      })),
    ],
    hooks: {
      ready: [
        (plot) => {
          plot.over.addEventListener("mouseenter", () => (isInside = true));
          plot.over.addEventListener("mouseleave", () => {
            isInside = false;
            setCursor(undefined);
          });
          plot.over.addEventListener("mousedown", (event) => (pressedAt = event.clientX));
          plot.over.addEventListener("click", (event) => {
            if (Math.abs(event.clientX - pressedAt) < CLICK_PX) {
              latest.current.onPick?.(plot.posToVal(plot.cursor.left ?? 0, "x"));
            }
          });
        },
      ],
      setCursor: [
        (plot) => {
          const { left } = plot.cursor;
          if (left !== undefined && left >= 0 && (isInside || document.activeElement === element)) {
            setCursor(plot.posToVal(left, "x"));
          }
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width >= CLICK_PX) {
            latest.current.onWindow?.([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          }
        },
      ],
      drawClear: [(plot) => shadeBands(plot, latest.current.bands ?? [], colour)],
      draw: [
        (plot) => {
          nameBands(plot, latest.current.bands ?? [], colour, font);
          drawMarks(plot, latest.current.marks ?? [], colour, font);
        },
      ],
    },
  };
}

/** Arrows move the cursor from event to event, + and - zoom around it, Enter picks, Escape shows all. */
function pressed(event: KeyboardEvent, plot: uPlot, props: Props): void {
  const [min, max] = props.window ?? props.whole;
  const at = (plot.cursor.left ?? -1) >= 0 ? plot.posToVal(plot.cursor.left ?? 0, "x") : min;
  const moved = (by: number): void => {
    const place = Math.min(Math.max(placeOf(props.at, at + 1e-6) + by, 0), props.at.length - 1);
    plot.setCursor({ left: plot.valToPos(Math.min(Math.max(props.at[place] ?? min, min), max), "x") + 1e-3, top: 10 });
  };
  const zoomed = (by: number): void => {
    const half = ((max - min) * by) / 2;
    const window: Window = [Math.max(at - half, props.whole[0]), Math.min(at + half, props.whole[1])];
    props.onWindow?.(window[0] <= props.whole[0] && window[1] >= props.whole[1] ? undefined : window);
  };
  const actions: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => moved(event.shiftKey ? -10 : -1),
    ArrowRight: () => moved(event.shiftKey ? 10 : 1),
    "+": () => zoomed(0.5),
    "=": () => zoomed(0.5),
    "-": () => zoomed(2),
    Enter: () => props.onPick?.(at),
    Escape: () => props.onWindow?.(undefined),
  };
  const action = actions[event.key];
  if (action !== undefined && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    action();
  }
}
