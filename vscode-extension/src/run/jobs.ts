/** Jobs that wait to be recorded, as `deepscope attach --format json` lists them. */

import { baseName } from "../paths";
import { list, natural, object, read, text, type Reader } from "../shape";
import { plain } from "../status/words";

export const USUAL_STEPS = 5;
/** Of as many a trace is of gigabytes. */
const MOST_STEPS = 10_000;

const job = object({
  pids: list(natural),
  program: text,
  folder: text,
  ranks: list(natural),
  world_size: natural,
  step: natural,
  step_ns: natural,
  state: text,
});
export type Job = ReturnType<typeof job>;
const jobs: Reader<Job[]> = list(job);

export const LISTING: readonly string[] = ["-m", "deepscope", "attach", "--format", "json"];

/** The jobs in what `LISTING` wrote; one without a process is none. */
export function jobsIn(output: string): Job[] {
  return read(jobs, JSON.parse(output) as unknown, "deepscope attach").filter(({ pids }) => pids.length > 0);
}

/** What a failed listing says: its last line, without the program's name. */
export function failureIn(stderr: string, otherwise: string, python: string): string {
  if (/no such command/i.test(stderr)) {
    return `DeepScope in ${python} is too old to record jobs that run; run: ${python} -m pip install --upgrade deepscope`;
  }
  const last = stderr.trim().split("\n").at(-1) ?? "";
  return last === "" ? otherwise : last.trim().replace(/^(deepscope|Error): /, "");
}

/** What a listing says beside its list: of processes that wait and do not answer. */
export function problemsIn(stderr: string): string[] {
  return stderr.split(/\r?\n/).flatMap((line) => (line.startsWith("deepscope: ") ? [line.slice("deepscope: ".length)] : []));
}

/** Of a run of problems what a message has room for. */
export function problemWords([first = "", ...others]: readonly string[]): string {
  return others.length === 0 ? first : `${first}; and ${others.length} more like this`;
}

const INTERRUPTED = 130;

/** What is said when `deepscope attach` has ended; undefined where it recorded, or where the user ended it: what was open is saved then. */
export function endWords(job: Pick<Job, "program" | "pids">, exitCode: number | undefined): string | undefined {
  return exitCode === undefined || exitCode === 0 || exitCode === INTERRUPTED
    ? undefined
    : `${nameOf(job)} was not recorded, or its trace cannot be shown; its terminal says why.`;
}

/** A row of the list of jobs. */
interface JobRow {
  readonly label: string;
  readonly description: string;
  readonly detail: string;
  readonly job: Job;
}

export function jobRow(job: Job): JobRow {
  const { pids, program, folder, step, step_ns, state } = job;
  const pace = step_ns > 0 ? ` of ${milliseconds(step_ns)} ms` : "";
  const words = [`pid ${pids[0] ?? ""}`, `step ${step.toLocaleString("en")}${pace}`, ranksWords(job), state].filter((word) => word !== "");
  return { label: plain(nameOf(job)), description: plain(words.join(", ")), detail: plain([program, folder].filter((word) => word !== "").join(" · ")), job };
}

/** `train.py` of `/home/me/train.py`. */
export function nameOf({ program, pids }: Pick<Job, "program" | "pids">): string {
  const name = baseName(program.trim());
  return name === "" ? `process ${pids[0] ?? ""}` : name;
}

function ranksWords({ ranks, world_size }: Job): string {
  return world_size > 1 ? `${ranks.length} of ${world_size} ranks` : "";
}

function milliseconds(ns: number): string {
  return (ns / 1e6).toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}

/** What is wrong with a number of steps as it was typed; undefined where nothing is. */
export function stepsProblem(typed: string): string | undefined {
  const count = Number(typed.trim());
  return /^\d+$/.test(typed.trim()) && count >= 1 && count <= MOST_STEPS ? undefined : `A whole number from 1 to ${MOST_STEPS.toLocaleString("en")}.`;
}

/** The arguments that record so many steps of a job. */
export function attaching({ pids }: Pick<Job, "pids">, steps: number): string[] {
  return ["attach", String(pids[0] ?? ""), "--steps", String(steps)];
}
