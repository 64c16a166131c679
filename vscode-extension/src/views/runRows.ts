/** The rows of the Runs view: runs with their traces, the newest first. */

import { age, shortDevice } from "../status/words";
import type { ListedTrace, Run } from "../server/contract";
import type { Chosen } from "../server/requests";
import { baseName, parentOf } from "../paths";

/** Folders of which traces are usual: the default of `deepscope.traces`. */
const USUAL: ReadonlySet<string> = new Set(["deepscope_logs", "lightning_logs", "runs", "logs", "log", "tb_logs", "deepscope_demo"]);

export interface TraceRow {
  readonly kind: "trace";
  readonly trace: ListedTrace;
  readonly label: string;
  readonly description: string;
  /** Why it cannot be read; "" where nothing is known to be wrong. */
  readonly problem: string;
}

export interface RunRow {
  readonly kind: "run";
  readonly id: string;
  readonly label: string;
  readonly description: string;
  readonly isSelected: boolean;
  readonly traces: readonly TraceRow[];
}

/** A run of several traces (ranks, stages) is a row with rows below it; one of a single trace is that trace's row. */
export function runRows(runs: readonly Run[], folders: readonly string[], nowMs: number): (RunRow | TraceRow)[] {
  return runs.flatMap((run): (RunRow | TraceRow)[] => {
    const [newest, ...others] = run.traces;
    if (newest === undefined) {
      return [];
    }
    const label = experiment(parentOf(newest.path), folders);
    const facts = [brokenWords(run.traces), baseName(run.program), run.stepTimeWords, ageOf(run, nowMs), shortDevice(newest.device), newest.commit.slice(0, 8)];
    if (others.length === 0) {
      const rank = newest.rank === null || newest.rank === 0 ? "" : `rank ${newest.rank}`;
      return [{ kind: "trace", trace: newest, label, problem: newest.problem, description: joined([...facts, newest.stage, rank, newest.sizeWords]) }];
    }
    const description = joined([...facts, run.ranks > 1 ? `${run.ranks} ranks` : ""]);
    return [{ kind: "run", id: run.id, label, description, isSelected: run.selected, traces: run.traces.map((trace) => traceRow(trace, nowMs)) }];
  });
}

/** What is chosen with a row: a trace, or, named by its newest trace, a run with all its ranks. */
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

function traceRow(trace: ListedTrace, nowMs: number): TraceRow {
  const label = joined([trace.stage, trace.rank === null ? "" : `rank ${trace.rank}`]) || trace.name;
  return { kind: "trace", trace, label, problem: trace.problem, description: joined([brokenWords([trace]), trace.stepTimeWords, ageOf(trace, nowMs), trace.sizeWords]) };
}

function ageOf({ recordedNs }: { readonly recordedNs: number }, nowMs: number): string {
  return age(recordedNs / 1e6, nowMs);
}

function joined(words: readonly string[]): string {
  return words.filter((word) => word !== "").join(" · ");
}

/** The folder of an experiment in its workspace folder, which is named where there are several; below a usual folder of traces the rest says all. */
function experiment(path: string, folders: readonly string[]): string {
  const folder = folders.find((one) => path === one || path.startsWith(`${one}/`) || path.startsWith(`${one}\\`));
  if (folder === undefined) {
    return path;
  }
  const parts = path.slice(folder.length + 1).split(/[/\\]/).filter((part) => part !== "");
  const rest = parts.length > 1 && USUAL.has(parts[0] ?? "") ? parts.slice(1) : parts;
  return [...(folders.length > 1 || rest.length === 0 ? [baseName(folder)] : []), ...rest].join("/");
}

/** What marks a run of which traces cannot be read. */
function brokenWords(traces: readonly ListedTrace[]): string {
  const broken = traces.filter(({ problem }) => problem !== "").length;
  return broken === 0 ? "" : broken === traces.length ? "cannot be read" : `${broken} of ${traces.length} cannot be read`;
}

/** What is said while traces are read: how far it is, else the trace's name. */
export function readingWords(message: string): string {
  return `Reading ${/^\d+ of \d+(?=:)/.exec(message)?.[0] ?? baseName(message)} …`;
}
