/** One device: its curve, and what was live at a moment of it: at the cursor, else at the chosen one, else at the peak. */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { choiceOf, go, withWords, type Address } from "../app/address";
import { questions, type DeviceCurve, type HeldPart, type MemoryCurve, type MemoryPage as Memory, type MomentQuestion, type Table } from "../contract";
import { Chart, type Mark, type Series } from "../parts/Chart";
import type { Window } from "../parts/chartScale";
import { DataTable } from "../parts/DataTable";
import { Segments } from "../parts/Controls";
import { StackBar, type StackPart } from "../parts/StackBar";
import { useAnswer, useAsked, useSource } from "../source/answers";
import { bytes, time } from "../words";

interface Props {
  readonly of: DeviceCurve;
  readonly all: Memory;
  readonly address: Address;
}

/** A capacity is drawn where the curve is not flattened by it. */
const CAPACITY_TIMES = 3;

export function DeviceMemory({ of, all, address }: Props): JSX.Element {
  const { isServed } = useSource();
  const [window, setWindow] = useState<Window | undefined>(undefined);
  const [rested, setRested] = useState<number | undefined>(undefined);
  const chosen = chosenOf(of, address);
  const at = rested ?? chosen;
  const choice: MomentQuestion = { ...choiceOf(address), ...(of.rank === null ? {} : { rank: of.rank }), device: of.device };
  const [beginNs, endNs] = window?.map(Math.round) ?? [];
  /** The curve of a window in all its detail; until that is there, the one of the whole. */
  const zoomed = useAsked(questions.memory_curve, beginNs === undefined || endNs === undefined || !isServed ? undefined : { ...choice, zero: of.begin, beginNs, endNs });
  const curve = zoomed?.state === "ready" ? zoomed.answer : of.curve;
  return (
    <>
      <section>
        <Curve of={of} curve={curve} window={window} chosen={chosen} setWindow={setWindow} rest={setRested} address={address} />
      </section>
      <section class="moment" aria-live="polite">
        {at === undefined || !isServed ? (
          <Live title={`Live at the peak, ${time(of.peakAtNs)}`} size={of.peakBytes} held={of.held} lines={of.atPeak ?? all.atPeak} address={address} isSum={of.atPeak === null && (all.devices.length > 1 || of.rank !== null)}>
            {isServed && <Modules of={of} choice={choice} at={of.peakAtNs} address={address} />}
          </Live>
        ) : (
          <AtMoment of={of} choice={choice} at={at} address={address} isChosen={rested === undefined} />
        )}
      </section>
    </>
  );
}

function chosenOf(of: DeviceCurve, { words }: Address): number | undefined {
  const word = words["at"];
  if (word === undefined || !/^\d{1,24}$/.test(word)) {
    return undefined;
  }
  const at = relative(of.begin, word);
  return at >= 0 && at <= of.endNs ? at : undefined;
}

interface CurveProps {
  readonly of: DeviceCurve;
  readonly curve: MemoryCurve;
  readonly window: Window | undefined;
  readonly chosen: number | undefined;
  readonly setWindow: (window: Window | undefined) => void;
  readonly rest: (at: number | undefined) => void;
  readonly address: Address;
}

function Curve({ of, curve, window, chosen, setWindow, rest, address }: CurveProps): JSX.Element {
  const known = curve.reservedBytes.map((size) => (size < 0 ? null : size));
  const isNear = of.capacityBytes > 0 && of.capacityBytes <= CAPACITY_TIMES * Math.max(of.peakBytes, ...known.map((size) => size ?? 0));
  const series: Series[] = [
    { label: "allocated", values: curve.allocatedBytes, colour: "--tone0", isFilled: true },
    ...(known.length > 0 ? [{ label: "reserved", values: known, colour: "--tone1" }] : []),
    ...(isNear ? [{ label: "capacity", values: curve.atNs.map(() => of.capacityBytes), colour: "--bad", isDashed: true }] : []),
  ];
  const marks: Mark[] = [
    { at: of.peakAtNs, value: of.peakBytes, label: `peak ${bytes(of.peakBytes)}`, colour: "--tone5" },
    ...(chosen === undefined ? [] : [{ at: chosen, label: "chosen", colour: "--accent" }]),
  ];
  return (
    <>
      <Chart
        label={`Memory of ${of.device} over time; its peak is ${bytes(of.peakBytes)}`}
        at={curve.atNs}
        series={series}
        whole={[0, Math.max(of.endNs, 1)]}
        window={window}
        marks={marks}
        bands={of.steps.map(({ number, beginNs, endNs }) => ({ begin: beginNs, end: endNs, label: `step ${number}` }))}
        words={bytes}
        atWords={time}
        base={2}
        onWindow={setWindow}
        onRest={rest}
        onPick={(at) => go(withWords(address, { at: absolute(of.begin, at) }))}
      />
      <p class="muted hint">
        Move over the curve to see what was live; click to keep a moment; drag to zoom.
        {of.capacityBytes > 0 && !isNear && ` The device has ${bytes(of.capacityBytes)}.`}
        {of.rank !== null && ` This is rank ${of.rank}, which has the largest peak.`}
      </p>
    </>
  );
}

interface MomentProps {
  readonly of: DeviceCurve;
  readonly choice: MomentQuestion;
  readonly at: number;
  readonly address: Address;
}

function AtMoment({ of, choice, at, address, isChosen }: MomentProps & { readonly isChosen: boolean }): JSX.Element {
  const found = useAnswer(questions.memory_at, { ...choice, at: absolute(of.begin, at) }, true);
  if (found.state === "ready") {
    const { answer } = found;
    return (
      <Live
        title={`Live at ${time(at)}`}
        size={answer.sizeBytes}
        held={answer.held}
        lines={address.words["live"] === "module" ? answer.modules : answer.lines}
        address={address}
        allocated={answer.allocatedBytes}
        back={isChosen}
      />
    );
  }
  return found.state === "failed" ? (
    <p class="note">{found.message}</p>
  ) : (
    <p class="muted" role="status">
      Reading the trace for what was live{found.total > 0 ? `: ${Math.round((100 * found.done) / found.total)} %` : ""} …
    </p>
  );
}

/** At the peak the modules are asked for where they are wanted. */
function Modules({ of, choice, at, address }: MomentProps): JSX.Element | null {
  const isWanted = address.words["live"] === "module";
  const found = useAsked(questions.memory_at, isWanted ? { ...choice, at: absolute(of.begin, at) } : undefined);
  if (!isWanted) {
    return null;
  }
  return found?.state === "ready" ? <DataTable of={found.answer.modules} word="live-" /> : <p class="muted">Reading the trace …</p>;
}

interface LiveProps {
  readonly title: string;
  readonly size: number;
  readonly held: readonly HeldPart[];
  readonly lines: Table;
  readonly address: Address;
  /** As the curve has it, where that may differ. */
  readonly allocated?: number;
  /** Whether there is a way back to the peak. */
  readonly back?: boolean;
  /** Whether the table sums up several devices or ranks. */
  readonly isSum?: boolean;
  readonly children?: ComponentChildren;
}

function Live({ title, size, held, lines, address, allocated = size, back = false, isSum = false, children }: LiveProps): JSX.Element {
  const by = address.words["live"] === "module" ? "module" : "line";
  const { isServed } = useSource();
  const hasOwn = by === "module" && children !== undefined && children !== false;
  return (
    <>
      <header class="row">
        <h2>
          {title}: {bytes(size)}
        </h2>
        {back && (
          <button type="button" onClick={() => go(withWords(address, { at: "" }))}>
            Back to the peak
          </button>
        )}
        <span class="grow" />
        {isServed && (
          <Segments
            label="By"
            options={[
              ["line", "Lines"],
              ["module", "Modules"],
            ]}
            value={by}
            choose={(live) => go(withWords(address, { live: live === "line" ? "" : live }), false)}
          />
        )}
      </header>
      {allocated !== size && <p class="note">The trace’s own total is {bytes(allocated)} at this moment; the blocks that are known to have been live sum up to more.</p>}
      <StackBar parts={stackOf(held)} words={bytes} />
      {isSum && !hasOwn && <p class="muted">The table has the peaks of all devices and ranks, added up.</p>}
      {hasOwn ? children : <DataTable of={lines} word="live-" />}
    </>
  );
}

/** Each kind of what holds memory always has the same colour. */
const TONES: Readonly<Record<string, string>> = {
  parameters: "tone0",
  gradients: "tone1",
  "optimizer state": "tone2",
  inputs: "tone3",
  activations: "tone4",
  temporaries: "tone5",
  unknown: "tone7",
};

export function stackOf(held: readonly HeldPart[]): StackPart[] {
  return held.map(({ kind, sizeBytes }) => ({ name: kind, value: sizeBytes, tone: TONES[kind] ?? "tone6" }));
}

/** A moment on the trace's clock, of which JavaScript's numbers do not hold all digits. */
export function absolute(begin: string, atNs: number): string {
  return String(BigInt(begin) + BigInt(Math.round(atNs)));
}

/** The other way. */
export function relative(begin: string, at: string): number {
  return Number(BigInt(at) - BigInt(begin));
}
