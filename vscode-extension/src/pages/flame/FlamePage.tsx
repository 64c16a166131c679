/** The flame graph: where the time goes by call path, down to kernels or up to callers, and against another run. */

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { choiceOf, go, linkTo, withWords, type Address, type PageProps } from "../app/address";
import { questions, type Depth, type Flame, type FlameDirection, type FlameMetric, type FlameQuestion } from "../contract";
import { DEPTH_WORDS, DEPTHS, KIND_WORDS } from "../../depths";
import { Answer, useAnswer, useHas, useSource } from "../source/answers";
import { Legend, Terms } from "../parts/Figures";
import { Place, useOpen } from "../parts/Place";
import { Search, Segments, Select } from "../parts/Controls";
import { count, duration, share, signed } from "../words";
import { boxesOf, changeColour, kindColour, KINDS, type Box } from "./boxes";
import { FlameChart } from "./FlameChart";
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
  const [chosen, choose] = useState<{ readonly box: Box; readonly at: Box | undefined }>();
  const open = useOpen();
  const isDifference = flame.baseline !== "";
  const { file, line } = address.words;
  useEffect(() => setSearch(""), [file, line]); // what is found would hide what is marked
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
          <Select
            options={DEPTHS.filter((one) => offers({ depth: one })).map((one) => [one, DEPTH_WORDS[one].toLowerCase()] as const)}
            value={depth}
            isDisabled={shown === "cpu"}
            choose={(next) => say("depth", next)}
          />
        </label>
        <Search label="Search boxes" placeholder="Search" value={search} look={setSearch} />
        <button
          type="button"
          onClick={() => {
            setReset(reset + 1);
            setSearch("");
            choose(undefined);
            go(withWords(address, { file: "", line: "" }), false);
          }}
        >
          Reset
        </button>
      </div>
      {isDifference ? <ChangeLegend flame={flame} /> : <KindLegend root={root} />}
      {flame.sums !== "" && <p class="muted">{flame.sums}</p>}
      {flame.note !== "" && <p class="note">{flame.note}</p>}
      {flame.wholeNs === 0 ? (
        <p class="muted">No time is known by call path.</p>
      ) : (
        <FlameChart root={root} of={isDifference ? "difference" : direction} search={search} marked={marked} chosen={(box, at) => choose({ box, at })} opened={open} reset={reset} />
      )}
      {chosen !== undefined && <Details {...chosen} root={root} isDifference={isDifference} address={address} />}
      {flame.leftOut > 0 && <p class="muted">{count(flame.leftOut)} smaller boxes are left out; their time is in those that hold them.</p>}
    </>
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
  return kinds.length < 2 ? null : <Legend label="Colours" of={kinds.map((kind) => [KIND_WORDS[kind], kindColour(kind)])} />;
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
  /** What it leads to: itself, or the line whose work it is. */
  readonly at: Box | undefined;
  readonly root: Box;
  readonly isDifference: boolean;
  readonly address: Address;
}

function Details({ box, at, root, isDifference, address }: DetailsProps): JSX.Element {
  return (
    <section class="flamebox" aria-label="The box">
      <h2>{box.name}</h2>
      <p>
        <span class="chip">{KIND_WORDS[box.kind]}</span>{" "}
        {at !== undefined && (
          <>
            {at !== box && "of "}
            <Place of={at} />
          </>
        )}
      </p>
      <Terms
        class="numbers"
        of={[
          ["time", duration(box.value)],
          ["of all", share(root.value > 0 ? box.value / root.value : 0)],
          ["its own", duration(box.self)],
          ...(isDifference ? [["change", `${signed(box.value - box.before)} of ${duration(box.before)}`] as const] : []),
        ]}
      />
      {at !== undefined && <Actions at={at} address={address} />}
    </section>
  );
}

function Actions({ at, address }: { readonly at: Box; readonly address: Address }): JSX.Element {
  const source = useSource();
  const place = { file: at.file, line: String(at.line) };
  return (
    <p class="actions">
      {at.kind === "line" && <a href={linkTo(address, "lines", place)}>Line</a>}
      {at.kind === "line" && source.isServed && <a href={linkTo(address, "timeline", place)}>Timeline</a>}
      {source.opensCode && (
        <button type="button" title="Ctrl-click (⌘) on the box does the same" onClick={() => source.open({ file: at.file, line: at.line })}>
          Open
        </button>
      )}
    </p>
  );
}
