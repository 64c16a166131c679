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

export function doctor(trace: string, change: (header: TraceHeader) => void): void {
  const whole = JSON.parse(gunzipSync(readFileSync(trace)).toString("utf8")) as { deepscope: TraceHeader };
  change(whole.deepscope);
  replace(trace, JSON.stringify(whole));
}

function replace(trace: string, text: string): void {
  writeFileSync(`${trace}.part`, gzipSync(text));
  renameSync(`${trace}.part`, trace);
}
