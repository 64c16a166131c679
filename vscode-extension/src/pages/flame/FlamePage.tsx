/** The flame graph: where the time goes by call path, down to kernels or up to callers, and against another run. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { choiceOf, go, linkTo, withWords, type Address } from "../app/address";
import type { PageProps } from "../app/registry";
import { questions, type Depth, type Flame, type FlameDirection, type FlameMetric, type FlameQuestion } from "../contract";
import { DEPTH_WORDS, DEPTHS, KIND_WORDS } from "../../depthWords";
import { KINDS, kindColour } from "../../flame/colours";
import { Answer } from "../parts/Answered";
import { Place } from "../parts/Place";
import { Segments } from "../parts/Segments";
import { useAnswer, useHas, useSource } from "../source/useAnswer";
import { count, duration, share } from "../words";
import { boxesOf, changeColour, type Box } from "./boxes";
import { FlameChart, signed } from "./FlameChart";
import "./flame.css";

const DIRECTIONS = [
  ["down", "Down"],
  ["up", "Callers"],
] as const;
const METRICS = { device: "Device", backward: "Backward", cpu: "CPU of lines" } as const;
const DEFAULT_DEPTH: Depth = "kernel";

export function FlamePage({ address }: PageProps): JSX.Element {
  const { words } = address;
  const depth = DEPTHS.find((one) => one === words["depth"]) ?? DEFAULT_DEPTH;
  const direction: FlameDirection = words["direction"] === "up" ? "up" : "down";
  const metric = (Object.keys(METRICS) as FlameMetric[]).find((one) => one === words["metric"]);
  const found = useAnswer(
    questions.flame,
    { ...choiceOf(address), depth, direction, ...(metric === undefined ? {} : { metric }), ...(words["baseline"] === undefined ? {} : { baseline: words["baseline"] }) },
    true,
  );
  return (
    <Answer of={found}>{(flame) => <Graph flame={flame} address={address} depth={depth} direction={direction} metric={metric ?? "device"} />}</Answer>
  );
}

interface GraphProps {
  readonly flame: Flame;
  readonly address: Address;
  readonly depth: Depth;
  readonly direction: FlameDirection;
  readonly metric: FlameMetric;
}

function Graph({ flame, address, depth, direction, metric }: GraphProps): JSX.Element {
  const has = useHas();
  const asked = { ...choiceOf(address), depth, direction, ...(address.words["metric"] === undefined ? {} : { metric }) };
  const offers = (other: Partial<FlameQuestion>): boolean => has(questions.flame, { ...asked, ...other });
  const root = useMemo(() => boxesOf(flame), [flame]);
  const [search, setSearch] = useState("");
  const [reset, setReset] = useState(0);
  const [box, setBox] = useState<Box>();
  const isDifference = flame.baseline !== "";
  const { file, line } = address.words;
  const marked = file !== undefined && line !== undefined && /^\d{1,9}$/.test(line) ? { file, line: Number(line) } : undefined;
  const shown = flame.metrics.includes(metric) ? metric : flame.metrics[0];
  const say = (name: string, value: string): void => go(withWords(address, { [name]: value }), false);
  return (
    <>
      <div class="flametools">
        <Segments label="Direction" options={DIRECTIONS.filter(([one]) => offers({ direction: one }))} value={direction} choose={(next) => say("direction", next === "down" ? "" : next)} />
        {flame.metrics.length > 1 && shown !== undefined && (
          <Segments
            label="Metric"
            options={flame.metrics.filter((one) => offers({ metric: one })).map((one) => [one, one === "device" && !flame.isDevice ? "Operators" : METRICS[one]] as const)}
            value={shown}
            choose={(next) => say("metric", next)}
          />
        )}
        <label title={shown === "cpu" ? "The CPU's time is known of lines, not of what is below them" : undefined}>
          Down to{" "}
          <select value={depth} disabled={shown === "cpu"} onChange={(event) => say("depth", event.currentTarget.value)}>
            {DEPTHS.filter((one) => offers({ depth: one })).map((one) => (
              <option key={one} value={one}>
                {DEPTH_WORDS[one].toLowerCase()}
              </option>
            ))}
          </select>
        </label>
        <input type="search" class="search" placeholder="Search" aria-label="Search boxes" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <button
          type="button"
          onClick={() => {
            setReset(reset + 1);
            setSearch("");
            setBox(undefined);
            go(withWords(address, { file: "", line: "" }), false);
          }}
        >
          Reset
        </button>
        <Baseline address={address} />
      </div>
      {isDifference ? <ChangeLegend flame={flame} /> : <KindLegend root={root} />}
      {flame.note !== "" && <p class="note">{flame.note}</p>}
      {flame.wholeNs === 0 ? (
        <p class="muted">No time is known by call path.</p>
      ) : (
        <FlameChart root={root} of={isDifference ? "difference" : direction} search={search} marked={marked} chosen={setBox} reset={reset} />
      )}
      {box !== undefined && <Details box={box} root={root} isDifference={isDifference} address={address} />}
      {flame.leftOut > 0 && <p class="muted">{count(flame.leftOut)} smaller boxes are left out; their time is in those that hold them.</p>}
    </>
  );
}

/** Another run to show the difference to; only where there is one. */
function Baseline({ address }: { readonly address: Address }): JSX.Element | null {
  const { isServed } = useSource();
  return isServed ? <Runs address={address} /> : null;
}

function Runs({ address }: { readonly address: Address }): JSX.Element | null {
  const found = useAnswer(questions.runs, {}, true);
  const runs = found.state === "ready" ? found.answer.runs : [];
  const mine = address.words["run"] ?? runs[0]?.id;
  const others = runs.filter(({ id }) => id !== mine);
  if (others.length === 0) {
    return null;
  }
  return (
    <label>
      Compared with{" "}
      <select class="baseline" value={address.words["baseline"] ?? ""} onChange={(event) => go(withWords(address, { baseline: event.currentTarget.value }))}>
        <option value="">nothing</option>
        {others.map(({ id, title, recordedAt }) => (
          <option key={id} value={id}>
            {title}, {recordedAt.slice(0, 16).replace("T", " ")}
          </option>
        ))}
      </select>
    </label>
  );
}

function KindLegend({ root }: { readonly root: Box }): JSX.Element | null {
  const kinds = useMemo(() => {
    const found = new Set<Box["kind"]>();
    const visit = (boxes: readonly Box[]): void => {
      for (const { kind, children } of boxes) {
        found.add(kind);
        visit(children);
      }
    };
    visit(root.children);
    return KINDS.filter((kind) => found.has(kind));
  }, [root]);
  if (kinds.length < 2) {
    return null;
  }
  return (
    <ul class="legend" aria-label="Colours">
      {kinds.map((kind) => (
        <li key={kind}>
          <span class="swatch" style={{ "--tone": kindColour(kind) }} />
          {KIND_WORDS[kind]}
        </li>
      ))}
    </ul>
  );
}

const STEPS = [-0.1, -0.05, -0.01, 0, 0.01, 0.05, 0.1];

function ChangeLegend({ flame }: { readonly flame: Flame }): JSX.Element {
  return (
    <p class="changelegend">
      <span class="muted">faster</span>
      {STEPS.map((step) => (
        <span key={step} class="swatch" style={{ "--tone": changeColour(step) }} />
      ))}
      <span class="muted">slower</span>
      <span>
        {duration(flame.wholeNs)}, {signed(flame.wholeNs - flame.beforeNs)} against {flame.baseline} for as many steps.
      </span>
      {flame.goneNs > 0 && <span class="muted">{duration(flame.goneNs)} were on call paths that are not here any more.</span>}
    </p>
  );
}

interface DetailsProps {
  readonly box: Box;
  readonly root: Box;
  readonly isDifference: boolean;
  readonly address: Address;
}

function Details({ box, root, isDifference, address }: DetailsProps): JSX.Element {
  const { isServed } = useSource();
  const place = { file: box.file, line: String(box.line) };
  const hasPlace = box.file !== "" && box.line > 0;
  return (
    <section class="flamebox" aria-label="The box">
      <h2>{box.name}</h2>
      <p>
        <span class="chip">{KIND_WORDS[box.kind]}</span>{" "}
        {hasPlace && (
          <Place file={box.file} line={box.line}>
            {box.place}
          </Place>
        )}
      </p>
      <dl class="numbers">
        <div>
          <dt>time</dt>
          <dd>{duration(box.value)}</dd>
        </div>
        <div>
          <dt>of all</dt>
          <dd>{share(root.value > 0 ? box.value / root.value : 0)}</dd>
        </div>
        <div>
          <dt>its own</dt>
          <dd>{duration(box.self)}</dd>
        </div>
        {isDifference && (
          <div>
            <dt>change</dt>
            <dd>
              {signed(box.value - box.before)} of {duration(box.before)}
            </dd>
          </div>
        )}
      </dl>
      {hasPlace && box.kind === "line" && (
        <p class="actions">
          <a href={linkTo(address, "lines", place)}>Line</a>
          {isServed && <a href={linkTo(address, "timeline", place)}>Timeline</a>}
        </p>
      )}
    </section>
  );
}
