/** Recorded traces, rewritten as somebody else might have written them. */

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";

type Scope = [kind: number, file: number, line: number, name: string, firstLine: number, path: string, pythonModule: string];

/** What of a trace's own object the tests change. */
export interface TraceHeader {
  run_id: string;
  project_root: string;
  hostname: string;
  metadata: Record<string, unknown>;
  device: { name: string };
  files: { path: string; text?: string; sha256?: string }[];
  scopes: Scope[];
}

/** The trace as recorded on a machine where a folder has another name. */
export function moveRecorded(trace: string, from: string, to: string): void {
  const text = gunzipSync(readFileSync(trace)).toString("utf8");
  replace(trace, text.replaceAll(from, to));
}

/** A trace, as far as the tests change it. */
export interface WholeTrace {
  deepscope: TraceHeader;
  traceEvents: { cat?: string; name?: string }[];
}

export function doctor(trace: string, change: (header: TraceHeader) => void): void {
  doctorWhole(trace, (whole) => change(whole.deepscope));
}

export function doctorWhole(trace: string, change: (whole: WholeTrace) => void): void {
  const whole = JSON.parse(gunzipSync(readFileSync(trace)).toString("utf8")) as WholeTrace;
  change(whole);
  replace(trace, JSON.stringify(whole));
}

function replace(trace: string, text: string): void {
  writeFileSync(`${trace}.part`, gzipSync(text));
  renameSync(`${trace}.part`, trace);
}
