/** The rows of the Runs view: traces grouped by run, the newest first. */

import type { ListedTrace } from "../server/contract";
import { age, size } from "../units";

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

export function runRows(traces: readonly ListedTrace[], folders: readonly string[], nowMs: number): RunRow[] {
  const runs = new Map<string, ListedTrace[]>();
  for (const trace of traces) {
    const key = trace.run || parentOf(trace.path);
    runs.set(key, [...(runs.get(key) ?? []), trace]);
  }
  const rows = [...runs].map(([id, members]) => {
    const newest = Math.max(...members.map((trace) => trace.recordedNs));
    const [first] = members;
    const facts = [age(newest / 1e6, nowMs), first?.device ?? "", first?.commit.slice(0, 8) ?? ""];
    return {
      newest,
      row: {
        kind: "run" as const,
        id,
        label: relative(parentOf(first?.path ?? id), folders),
        description: facts.filter((fact) => fact !== "").join(" · "),
        isSelected: members.some((trace) => trace.selected),
        traces: [...members].sort(byTime).map((trace) => traceRow(trace, nowMs)),
      },
    };
  });
  return rows.sort((one, other) => other.newest - one.newest).map(({ row }) => row);
}

function traceRow(trace: ListedTrace, nowMs: number): TraceRow {
  const said = nameFacts(trace.name);
  const stage = trace.stage || said.stage;
  const rank = trace.rank ?? said.rank;
  const label = [stage, rank === null ? "" : `rank ${rank}`].filter((word) => word !== "").join(" · ") || trace.name;
  return { kind: "trace", trace, label, description: `${age(trace.recordedNs / 1e6, nowMs)} · ${size(trace.sizeBytes)}` };
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
