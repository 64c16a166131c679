/** The rows of the Runs view: runs with their traces, the newest first. */

import { age } from "../age";
import type { ListedTrace, Run } from "../server/contract";
import type { Chosen } from "../server/requests";
import { programName, shortDevice } from "../status/words";

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

/** A run of several traces (ranks, stages) is a row with rows below it; one of a single trace is that trace's row. */
export function runRows(runs: readonly Run[], folders: readonly string[], nowMs: number): (RunRow | TraceRow)[] {
  return runs.flatMap((run): (RunRow | TraceRow)[] => {
    const [newest, ...others] = run.traces;
    if (newest === undefined) {
      return [];
    }
    const label = run.program === "" ? relative(parentOf(newest.path), folders) : programName(run.program);
    const facts = [run.stepTimeWords, ageOf(run, nowMs), shortDevice(newest.device), newest.commit.slice(0, 8)];
    if (others.length === 0) {
      const rank = newest.rank === null || newest.rank === 0 ? "" : `rank ${newest.rank}`;
      return [{ kind: "trace", trace: newest, label, description: joined([...facts, newest.stage, rank, newest.sizeWords]) }];
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
  return { kind: "trace", trace, label, description: joined([trace.stepTimeWords, ageOf(trace, nowMs), trace.sizeWords]) };
}

function ageOf({ recordedNs }: { readonly recordedNs: number }, nowMs: number): string {
  return age(recordedNs / 1e6, nowMs);
}

function joined(words: readonly string[]): string {
  return words.filter((word) => word !== "").join(" · ");
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
