/** The timeline: what ran when, on threads and devices, from the whole run to a nanosecond. */

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { PageProps } from "../app/address";
import { questions, type Choice, type Found, type Header, type Timeline } from "../contract";
import { Answer, asking, useAnswer, useAsked, useSource } from "../source/answers";
import { queryOf } from "../source/source";
import { toggled } from "../parts/Controls";
import { duration } from "../words";
import { ColoursPanel } from "./ColoursPanel";
import { DetailsPanel } from "./DetailsPanel";
import { Help, Perfetto } from "./Help";
import type { Hit } from "./hit";
import type { Colouring } from "./palette";
import { StretchPanel } from "./StretchPanel";
import type { Spot } from "./scene";
import { StageView } from "./StageView";
import type { Stage } from "./stage";
import { exact } from "./ruler";
import { Toolbar } from "./Toolbar";
import { useFinder } from "./useFinder";
import { useKeys } from "./keys";
import { change, sliceOf, stretchOf, traceOf, useSettled, useStep, viewOf, wordsOf } from "./address";
import { around, revealing, type View } from "./view";
import "./timeline.css";

/** Free space beside the steps, as a part of their time. */
const FIRST_MARGIN = 0.02;

export function TimelinePage(props: PageProps): JSX.Element {
  const choice = traceOf(props.address);
  const key = queryOf(choice);
  const found = useAnswer(questions.timeline, choice);
  // Another trace is another page: nothing of the last one stays.
  return (
    <Answer of={found}>
      {(of) =>
        of.tracks.length === 0 ? (
          <p class="muted">This trace has no events in time.</p>
        ) : (
          <Explorer key={`${key} ${of.endNs} ${of.slices}`} of={of} choice={choice} {...props} />
        )
      }
    </Answer>
  );
}

interface ExplorerProps extends PageProps {
  readonly of: Timeline;
  readonly choice: Choice;
}

function Explorer({ of, choice, address: { words }, header }: ExplorerProps): JSX.Element {
  const source = useSource();
  const whole = Math.max(of.endNs, 1);
  /** What is shown first: the steps with some space beside them, not the profiler's own begin and end. */
  const first = useMemo(() => around(of.workBeginNs, of.workEndNs, whole, FIRST_MARGIN), [of]);
  const [stage, setStage] = useState<Stage | undefined>();
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set());
  const [filter, setFilter] = useState("");
  const [colouring, colour] = useState<Colouring>("kind");
  const [isMarking, setMarking] = useState(false);
  const [over, setOver] = useState<"" | "help" | "perfetto">("");
  const chosen = sliceOf(words, of);
  const stretch = useMemo(() => stretchOf(words, whole), [words["mark"], whole]);
  const details = useAsked(questions.timeline_slice, chosen === undefined ? undefined : { ...choice, slice: chosen });
  const sums = useAsked(questions.timeline_selection, stretch === undefined ? undefined : { ...choice, begin: stretch.begin, end: stretch.end });
  const finder = useFinder(of, choice, words, chosen);
  const known = details?.state === "ready" && details.answer.slice === chosen ? details.answer : undefined;
  const spot = useMemo<Spot | undefined>(() => known && { track: known.track, row: known.row, start: known.startNs, end: known.endNs }, [known]);
  const links = useMemo(() => known?.links.slice(0, 50) ?? [], [known]);
  const found = useMemo(() => finder.matches?.found.map(spotOf) ?? [], [finder.matches]);

  const settled = useSettled(first);
  useEffect(() => {
    const wanted = viewOf(words, whole) ?? (words["from"] === undefined && words["at"] === undefined ? first : undefined);
    if (stage !== undefined && wanted !== undefined && !settled.isOwn(words)) {
      stage.motion.go(wanted);
    }
  }, [stage, words["from"], words["to"], words["at"]]);

  useStep(stage, choice, words);

  const turn = (key: string): void => setTurned((before) => toggled(before, key));
  /** Goes to a slice: opens its track, moves there; the way back leads to what was seen before. */
  const jump = (to: Spot, slice: number, isNew = true): void => {
    const lane = stage?.lanes.find((one) => one.type === "track" && one.track.id === to.track);
    if (stage === undefined) {
      return;
    }
    if (lane === undefined) {
      setFilter("");
    } else if (!lane.isOpen) {
      turn(lane.key);
    }
    const view = revealing(stage.motion.goal, to.start, to.end, whole);
    settled.keep(stage.motion.goal);
    change({ slice: String(slice), ...wordsOf(view, first) }, isNew);
    stage.motion.go(view);
    settled.own(view);
    window.setTimeout(() => stage.reveal(to));
  };
  const jumpTo = (slice: number): void => {
    asking(source, questions.timeline_slice, { ...choice, slice }).then(
      (one) => jump({ track: one.track, row: one.row, start: one.startNs, end: one.endNs }, slice),
      () => change({ slice: String(slice) }, true),
    );
  };
  const show = (one: Found): void => jump(spotOf(one), one.slice);
  const step = (forward: boolean): void => {
    const next = finder.step(forward, stage?.motion.view.begin ?? 0);
    if (next !== undefined) {
      jump(spotOf(next), next.slice, false);
    }
  };
  const seek = (text: string): void => change({ find: text, file: "", line: "" });
  const fit = (to: View | undefined): void => {
    if (to !== undefined) {
      stage?.motion.go(around(to.begin, to.end, whole));
    }
  };
  const fitSpot = (): void => {
    if (spot !== undefined) {
      stage?.motion.go(around(spot.start, spot.end, whole));
      stage?.reveal(spot);
    } else {
      fit(stretch);
    }
  };
  const mark = (to: View | undefined): void => change({ mark: to === undefined || to.end <= to.begin ? "" : `${to.begin}-${to.end}` });
  const clicked = (hit: Hit | undefined): void => {
    if (hit !== undefined && hit.slice < 0) {
      stage?.motion.go(around(hit.start, hit.end, whole));
    } else {
      change({ slice: hit === undefined ? "" : String(hit.slice), ...(hit === undefined ? {} : { mark: "" }) });
    }
  };

  // A line was asked for: its first slice is shown.
  const [arrived, setArrived] = useState("");
  const sought = `${words["file"] ?? ""}:${words["line"] ?? ""}`;
  const isArriving = words["file"] !== undefined && chosen === undefined && arrived !== sought && finder.matches !== undefined;
  useEffect(() => {
    const first = finder.matches?.found[0];
    if (isArriving && stage !== undefined) {
      setArrived(sought);
      if (first !== undefined && words["from"] === undefined) {
        jump(spotOf(first), first.slice, false);
      }
    }
  }, [isArriving, stage, finder.matches]);

  useKeys(stage, {
    choose: (direction) => {
      const hit = stage?.beside(spot, direction);
      if (hit !== undefined) {
        jump(hit, hit.slice, false);
      }
    },
    whole: () => stage?.motion.go({ begin: 0, end: whole }),
    fit: fitSpot,
    mark: () => spot !== undefined && mark({ begin: spot.start, end: spot.end }),
    step,
    help: () => setOver("help"),
    close: () => (stretch !== undefined ? mark(undefined) : chosen !== undefined ? change({ slice: "" }) : seek("")),
  });

  const describe =
    known === undefined ? "" : `${known.kind} ${known.name}, ${duration(known.endNs - known.startNs)}, at ${exact(known.startNs)}, row ${known.row + 1}`;
  return (
    <div class="timeline" data-slices={of.slices}>
      <Toolbar
        finder={finder}
        find={words["find"] ?? ""}
        seek={seek}
        step={step}
        zoom={(factor) => stage?.motion.zoom(factor, 0.5)}
        whole={() => stage?.motion.go({ begin: 0, end: whole })}
        isMarking={isMarking}
        setMarking={setMarking}
        colouring={colouring}
        colour={colour}
        filter={filter}
        setFilter={setFilter}
        help={() => setOver("help")}
        perfetto={() => setOver("perfetto")}
      />
      <StageView
        of={of}
        choice={choice}
        view={viewOf(words, whole) ?? first}
        shown={{ colouring, sought: finder.sought, chosen: spot, links, found, stretch }}
        turned={turned}
        filter={filter}
        isMarking={isMarking}
        turn={turn}
        made={setStage}
        settled={(view) => settled.told(view)}
        clicked={clicked}
        marked={mark}
        describe={describe}
      />
      {stretch !== undefined && sums !== undefined ? (
        <div class="panel" aria-label="The marked stretch" role="region">
          <Answer of={sums}>{(shown) => <StretchPanel of={of} sums={shown} fit={() => fit(stretch)} clear={() => mark(undefined)} seek={seek} />}</Answer>
        </div>
      ) : chosen !== undefined && details !== undefined ? (
        <div class="panel" aria-label="The chosen slice" role="region">
          <Answer of={details}>{(shown) => <DetailsPanel of={of} choice={choice} details={shown} jump={jumpTo} show={show} fit={fitSpot} seek={seek} />}</Answer>
        </div>
      ) : (
        <ColoursPanel of={of} ranks={choice.rank === undefined ? header.ranks : []} />
      )}
      {over === "help" && <Help close={() => setOver("")} />}
      {over === "perfetto" && <Perfetto trace={traceIn(header)} close={() => setOver("")} />}
    </div>
  );
}

/** The path of the first trace. */
function traceIn({ facts }: Header): string {
  return (facts.find(({ label }) => label === "Trace")?.value ?? "TRACE").replace(/ and \d+ more$/, "");
}

function spotOf({ track, row, startNs, endNs }: Found): Spot {
  return { track, row, start: startNs, end: endNs };
}
