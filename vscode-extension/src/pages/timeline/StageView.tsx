/** The drawn part of the page: overview, ruler, tracks with their titles, the words at the pointer. */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { questions, type Choice, type Timeline } from "../contract";
import { patiently, useSource } from "../source/answers";
import { listenLanes, listenOverview } from "./gestures";
import type { Hit } from "./hit";
import { heightOf, lanesOf, pinnedHeight, type Lane } from "./layout";
import { Stage, type Shown } from "./stage";
import { around, type View } from "./view";
import { count, duration, share, valueWords } from "../words";

interface StageProps {
  readonly of: Timeline;
  readonly choice: Choice;
  /** Where it begins. */
  readonly view: View;
  readonly shown: Omit<Shown, "choices">;
  readonly turned: ReadonlySet<string>;
  readonly filter: string;
  readonly isMarking: boolean;
  readonly turn: (key: string) => void;
  readonly made: (stage: Stage | undefined) => void;
  readonly settled: (view: View) => void;
  readonly clicked: (hit: Hit | undefined) => void;
  readonly marked: (stretch: View | undefined) => void;
  readonly describe: string;
}

/** Narrower pages have titles above the tracks. */
const NARROW = 640;

export function StageView(props: StageProps): JSX.Element {
  const { of, choice, shown, turned, filter } = props;
  const source = useSource();
  const parts = {
    area: useRef<HTMLDivElement>(null),
    base: useRef<HTMLCanvasElement>(null),
    ruler: useRef<HTMLCanvasElement>(null),
    overview: useRef<HTMLCanvasElement>(null),
  };
  const [isNarrow, setNarrow] = useState(false);
  const point = useRef<(pointed: Pointed | undefined) => void>(() => undefined);
  const [problem, setProblem] = useState("");
  const stage = useRef<Stage | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const choices = useMemo(() => ({ turned, filter, hasHeads: isNarrow }), [turned, filter, isNarrow]);
  const lanes = useMemo(() => lanesOf(of, choices), [of, choices]);

  useEffect(() => {
    const [area, base, ruler, overview] = [parts.area.current, parts.base.current, parts.ruler.current, parts.overview.current];
    if (area === null || base === null || ruler === null || overview === null) {
      return undefined;
    }
    const made = new Stage(
      of,
      { scroller: area, base, ruler, overview },
      (begin, end, pixels, tracks) =>
        patiently(source, questions.timeline_window, { ...choice, begin, end, pixels, tracks: tracks.length === 0 ? "none" : tracks.join(",") }),
      {
        settled: (view) => latest.current.settled(view),
        failed: setProblem,
      },
      props.view,
    );
    stage.current = made;
    props.made(made);
    const width = new ResizeObserver(() => setNarrow(area.clientWidth < NARROW));
    width.observe(area);
    const ends = [
      listenLanes(made, area, base, {
        hovered: (hit, x, y) => point.current(hit === undefined ? undefined : { hit, name: made.loader.names.texts[hit.name] ?? "", x: x + base.offsetLeft, y }),
        clicked: (hit) => latest.current.clicked(hit),
        fitted: ({ start, end }) => made.motion.go(around(start, end, made.whole)),
        marked: (stretch) => latest.current.marked(stretch),
        marksByDrag: () => latest.current.isMarking,
      }),
      listenOverview(made, overview),
      () => width.disconnect(),
      () => made.end(),
    ];
    return () => {
      props.made(undefined);
      ends.forEach((end) => end());
    };
  }, [of, source]);

  useEffect(() => stage.current?.show({ ...shown, choices }), [choices, ...Object.values(shown)]);

  return (
    <div class={`stage ${isNarrow ? "narrow" : ""} ${props.isMarking ? "marking" : ""}`}>
      <canvas class="overview" ref={parts.overview} role="img" aria-label="The whole timeline; drag to choose what is seen" />
      <canvas class="ruler" ref={parts.ruler} aria-hidden="true" />
      <div class="viewport">
        <canvas class="base" ref={parts.base} aria-hidden="true" />
        <div
          class="lanes"
          ref={parts.area}
          tabIndex={0}
          role="application"
          aria-label="Timeline"
          aria-description="Zoom with w and s, move with a and d, choose slices with full stop and comma; press ? for all keys."
        >
          <Titles lanes={lanes} turn={props.turn} />
        </div>
        <Tooltip of={of} listen={(show) => (point.current = show)} />
        {problem !== "" && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
      </div>
      <p class="unseen" role="status">
        {props.describe}
      </p>
    </div>
  );
}

interface TitlesProps {
  readonly lanes: readonly Lane[];
  readonly turn: (key: string) => void;
}

/** The tracks' titles at the left: each opens and closes its track. */
function Titles({ lanes, turn }: TitlesProps): JSX.Element {
  return (
    <div class="tall" style={{ height: `${heightOf(lanes)}px`, "--pinned": `${pinnedHeight(lanes)}px` }}>
      {lanes.map((lane) => (
        <div
          key={lane.key}
          class={`lanetitle ${lane.head > 0 ? "above" : ""} ${isPinned(lane) ? "pinned" : ""}`}
          style={{ top: `${lane.y}px`, height: `${lane.head > 0 && isPinned(lane) ? lane.head : lane.height}px` }}
        >
          <div class="held">
          {canTurn(lane) ? (
            <button type="button" aria-expanded={lane.isOpen} title={`${lane.title} · ${about(lane)}`} onClick={() => turn(lane.key)}>
              <Triangle />
              <span>{lane.title}</span>
            </button>
          ) : (
            <span class="fixed" title={`${lane.title} · ${about(lane)}`}>
              <span>{lane.title}</span>
            </span>
          )}
          {lane.height >= 36 && lane.head === 0 && <small>{about(lane)}</small>}
          </div>
        </div>
      ))}
    </div>
  );
}

function isPinned(lane: Lane): boolean {
  return lane.type === "track" && lane.track.kind === "steps";
}

function canTurn(lane: Lane): boolean {
  return lane.type === "counter" || lane.track.rows > 1;
}

function about(lane: Lane): string {
  if (lane.type === "counter") {
    return `up to ${valueWords(lane.counter.largest, lane.counter.unit)}`;
  }
  const { slices, isTraining } = lane.track;
  return `${isTraining ? "trains · " : ""}${count(slices)} ${slices === 1 ? "slice" : "slices"}`;
}

function Triangle(): JSX.Element {
  return (
    <svg viewBox="0 0 8 8" width="8" height="8" aria-hidden="true">
      <path d="M2 1l4 3-4 3z" />
    </svg>
  );
}

interface Pointed {
  readonly hit: Hit;
  readonly name: string;
  readonly x: number;
  readonly y: number;
}

interface TooltipProps {
  readonly of: Timeline;
  /** Is given what shows a slice's words, so that the pointer's moves draw nothing else anew. */
  readonly listen: (show: (pointed: Pointed | undefined) => void) => void;
}

const APART = 14;

function Tooltip({ of, listen }: TooltipProps): JSX.Element | null {
  const [pointed, point] = useState<Pointed | undefined>();
  listen(point);
  return pointed === undefined ? null : <Words of={of} {...pointed} />;
}

function Words({ of, hit, name, x, y }: Pointed & { readonly of: Timeline }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    const parent = element?.offsetParent;
    if (element != null && parent != null) {
      const left = x + APART + element.offsetWidth > parent.clientWidth ? x - APART - element.offsetWidth : x + APART;
      const top = y + APART + element.offsetHeight > parent.clientHeight ? y - APART - element.offsetHeight : y + APART;
      element.style.transform = `translate(${Math.max(left, 2)}px, ${Math.max(top, 2)}px)`;
    }
  });
  const length = hit.end - hit.start;
  const place = of.places[hit.place];
  const kind = of.kinds[hit.kind] ?? "other";
  const isJoined = hit.count > 1;
  return (
    <div class="tip" ref={box} role="tooltip">
      <strong>{name}</strong>
      <span>
        {duration(length)}
        <span class="muted">
          {isJoined ? ` · ${count(hit.count)} slices, ${share(hit.busy / Math.max(length, 1))} covered; zoom in to part them` : ` · ${kind}`}
        </span>
      </span>
      {place !== undefined && place.title !== name && <span class="muted">{place.title}</span>}
    </div>
  );
}
