/** A real run, recorded once for all tests, and what the command line says of it. */

import { execFile, execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { moveRecorded } from "./doctored";
import { PYTHON } from "./surroundings";

export const PROGRAM = "train_transformer.py";
/** How rows name a line of it. */
export const placeInRow = (line: number): string => `train_transformer.py:${line}`;
export const TRACES = "deepscope_logs";

/** One line of `deepscope report --format json`. */
export interface ReportLine {
  readonly file: string;
  readonly line: number;
  readonly function: string;
  readonly self_device_ns: number;
  readonly total_device_ns: number;
  readonly self_cpu_ns: number;
  readonly cost_ns: number;
  readonly cost_per_step_ns: number;
  /** The part of it that is Lightning's. */
  readonly framework_ns: number;
}

export interface Report {
  readonly metric: string;
  readonly totals: { readonly busy_ns: number; readonly device_ns: number; readonly steps: number };
  readonly lines: readonly ReportLine[];
  readonly no_line: { readonly cost_ns: number };
  readonly findings: readonly unknown[];
}

/** Trains the demo's model with `Trainer(profiler="deep")` in a folder. */
export async function record(folder: string, steps: number): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const run = promisify(execFile);
  await run(PYTHON, ["-c", "import sys, pathlib, deepscope.cli.demo as demo; demo.copy_program(pathlib.Path(sys.argv[1]))", folder]);
  await run(PYTHON, ["train_transformer.py", "--steps", String(steps), "--batch-size", "8"], { cwd: folder });
}

export function report(path: string): Report {
  return JSON.parse(execFileSync(PYTHON, ["-m", "deepscope", "report", path, "--format", "json", "-n", "1000"], { encoding: "utf8" })) as Report;
}

/** What a line costs the run, without what is the framework's own there. */
export function costOf(line: ReportLine): number {
  return line.cost_ns - line.framework_ns;
}

/** A line's part of what the run costs. */
export function shareOf(report: Report, line: ReportLine): number {
  return costOf(line) / (report.lines.reduce((sum, one) => sum + one.cost_ns, 0) + report.no_line.cost_ns);
}

/** The line that costs the run most, without what is the framework's own there. */
export function hottestOf(report: Report): ReportLine {
  const [first, ...others] = report.lines;
  if (first === undefined) {
    throw new Error("the report has no line");
  }
  return others.reduce((best, line) => (costOf(line) > costOf(best) ? line : best), first);
}

/** The line with most of the operators' work: its box in the flame graph is the widest of all lines'. */
export function busiestOf(report: Report): ReportLine {
  return report.lines.reduce((best, line) => (line.self_device_ns > best.self_device_ns ? line : best));
}

/** The trace files of a project, the oldest first. */
export function traces(project: string): string[] {
  const folder = join(project, TRACES);
  return readdirSync(folder)
    .filter((name) => name.endsWith(".pt.trace.json.gz"))
    .sort((one, other) => stamp(one) - stamp(other))
    .map((name) => join(folder, name));
}

function stamp(name: string): number {
  return Number(/\.(\d{10,})\.pt\./.exec(name)?.[1] ?? 0);
}

/** A new folder below the system's temporary one, and its removal. */
export function scratch(): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "deepscope-e2e-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }) };
}

/** A copy of a recorded project under another path, its traces as if recorded there. */
export function copyProject(from: string, to: string): string {
  cpSync(from, to, { recursive: true, filter: (source) => !source.includes("__pycache__") });
  if (!existsSync(join(to, PROGRAM))) {
    throw new Error(`${from} holds no ${PROGRAM}`);
  }
  for (const trace of traces(to)) {
    moveRecorded(trace, from, to);
  }
  return to;
}
