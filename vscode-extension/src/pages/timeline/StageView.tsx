/** The drawn part of the page: overview, ruler, tracks with their titles, the words at the pointer. */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { questions, type Choice, type Timeline } from "../contract";
import { patiently, useSource } from "../source/useAnswer";
import { listenLanes, listenOverview } from "./gestures";
import type { Hit } from "./hit";
import { lanesOf } from "./layout";
import { Stage, type Shown } from "./stage";
import { Titles } from "./Titles";
import { Tooltip, type Pointed } from "./Tooltip";
import { around, type View } from "./view";

export interface StageProps {
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
