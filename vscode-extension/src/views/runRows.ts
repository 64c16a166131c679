/** The rows of the Runs view: traces grouped by run, the newest first. */

import type { ListedTrace } from "../server/contract";
import type { Chosen } from "../server/requests";
import { programName, shortDevice } from "../status/words";
import { age, duration, size } from "../units";

/** In the order in which the server shows them; "" is a recording outside Lightning. */
const STAGES = ["fit", "", "validate", "test", "predict", "sanity_check"];

export interface TraceRow {
  readonly kind: "trace";
  readonly trace: ListedTrace;
  readonly label: string;
  readonly description: string;
}

export interface RunRow {
  readonly kind: "run";
  readonly id: string;
  readonly label: string;
  readonly description: string;
  readonly isSelected: boolean;
  readonly traces: readonly TraceRow[];
}

/** What a trace's name says where the server does not: `<worker>.<stage>.rank<R>.<ns>.pt.trace.json.gz`. */
export function nameFacts(name: string): { readonly stage: string; readonly rank: number | null } {
  const match = /(?:\.(fit|validate|test|predict|sanity_check))?(?:\.rank(\d+))?\.\d{10,}\.pt\.trace\.json(?:\.gz)?$/.exec(name);
  return { stage: match?.[1] ?? "", rank: match?.[2] === undefined ? null : Number(match[2]) };
}

/** A run of several traces (ranks, stages) is a row with rows below it; one of a single trace is that trace's row. */
export function runRows(traces: readonly ListedTrace[], folders: readonly string[], nowMs: number): (RunRow | TraceRow)[] {
  const runs = new Map<string, ListedTrace[]>();
  for (const trace of traces) {
    const key = trace.run || parentOf(trace.path);
    runs.set(key, [...(runs.get(key) ?? []), trace]);
  }
  const rows = [...runs].map(([id, members]) => {
    const sorted = [...members].sort(byTime);
    const [newest, ...others] = sorted;
    const row = newest === undefined || others.length > 0 ? runRow(id, sorted, folders, nowMs) : loneRow(newest, folders, nowMs);
    return { time: newest?.recordedNs ?? 0, row };
  });
  return rows.sort((one, other) => other.time - one.time).map(({ row }) => row);
}

/** What a row stands for where one is chosen: a trace, or a run with all its ranks, by its newest trace. */
export function chosenBy(row: RunRow | TraceRow): Chosen {
  return row.kind === "trace" ? { path: row.trace.path } : { path: row.traces[0]?.trace.path ?? "", run: true };
}

/** The traces that a row is of. */
export function pathsOf(row: RunRow | TraceRow): string[] {
  return tracesIn([row]).map(({ trace }) => trace.path);
}

/** All the traces in rows. */
export function tracesIn(rows: readonly (RunRow | TraceRow)[]): TraceRow[] {
  return rows.flatMap((row) => (row.kind === "run" ? row.traces : [row]));
}

function runRow(id: string, traces: readonly ListedTrace[], folders: readonly string[], nowMs: number): RunRow {
  const ranks = new Set(traces.map(rankOf)).size;
  const [newest] = traces;
  return {
    kind: "run",
    id,
    label: runName(traces, folders),
    description: joined([...(newest === undefined ? [] : runFacts(traces, nowMs)), ranks > 1 ? `${ranks} ranks` : ""]),
    isSelected: traces.some((trace) => trace.selected),
    traces: traces.map((trace) => traceRow(trace, nowMs)),
  };
}

function loneRow(trace: ListedTrace, folders: readonly string[], nowMs: number): TraceRow {
  const rank = rankOf(trace);
  const facts = [...runFacts([trace], nowMs), stageOf(trace), rank === null || rank === 0 ? "" : `rank ${rank}`, size(trace.sizeBytes)];
  return { kind: "trace", trace, label: runName([trace], folders), description: joined(facts) };
}

/** By what ran; a trace that does not say so by its folder. */
function runName(traces: readonly ListedTrace[], folders: readonly string[]): string {
  const named = traces.find((trace) => trace.program !== "");
  return named === undefined ? relative(parentOf(traces[0]?.path ?? ""), folders) : programName(named.program);
}

/** `2.79 s a step`, `5 min ago`, the device and the commit, of what is known. */
function runFacts(traces: readonly ListedTrace[], nowMs: number): string[] {
  const [newest] = traces;
  const stepNs = meanStepNs(traces);
  const step = stepNs === null ? "" : `${duration(stepNs)} a step`;
  return newest === undefined ? [] : [step, age(newest.recordedNs / 1e6, nowMs), shortDevice(newest.device), newest.commit.slice(0, 8)];
}

/** Of the training, if it is among them; the mean of the ranks, of each its newest trace. `traces`: the newest first. */
function meanStepNs(traces: readonly ListedTrace[]): number | null {
  const stages = STAGES.filter((stage) => traces.some((trace) => stageOf(trace) === stage));
  const ofRank = new Map<number | null, number>();
  for (const trace of traces) {
    if (trace.stepNs !== null && stageOf(trace) === (stages[0] ?? stageOf(trace)) && !ofRank.has(rankOf(trace))) {
      ofRank.set(rankOf(trace), trace.stepNs);
    }
  }
  return ofRank.size === 0 ? null : [...ofRank.values()].reduce((sum, ns) => sum + ns, 0) / ofRank.size;
}

function traceRow(trace: ListedTrace, nowMs: number): TraceRow {
  const rank = rankOf(trace);
  const label = joined([stageOf(trace), rank === null ? "" : `rank ${rank}`]) || trace.name;
  const step = trace.stepNs === null ? "" : `${duration(trace.stepNs)} a step`;
  return { kind: "trace", trace, label, description: joined([step, age(trace.recordedNs / 1e6, nowMs), size(trace.sizeBytes)]) };
}

function stageOf(trace: ListedTrace): string {
  return trace.stage || nameFacts(trace.name).stage;
}

function rankOf(trace: ListedTrace): number | null {
  return trace.rank ?? nameFacts(trace.name).rank;
}

function joined(words: readonly string[]): string {
  return words.filter((word) => word !== "").join(" · ");
}

function byTime(one: ListedTrace, other: ListedTrace): number {
  return other.recordedNs - one.recordedNs || (one.name < other.name ? -1 : 1);
}

/** The folder of a path of any system. */
export function parentOf(path: string): string {
  const end = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"));
  return end > 0 ? path.slice(0, end) : path;
}

function relative(path: string, folders: readonly string[]): string {
  const folder = folders.find((one) => path.startsWith(`${one}/`) || path.startsWith(`${one}\\`));
  return folder === undefined ? path : path.slice(folder.length + 1);
}
