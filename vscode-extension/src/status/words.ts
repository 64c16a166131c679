/** What is said of the trace that is shown: in the status item, in notices, how old it is. */

import { baseName } from "../paths";
import type { ShownTrace, Status } from "../server/contract";

/** Where the extension stands as a whole. */
export type Standing = "off" | "missing" | "restricted" | "starting" | "failed" | Status["state"];

interface StatusWords {
  readonly text: string;
  /** Lines of plain text. */
  readonly tooltip: readonly string[];
  readonly isWarning: boolean;
}

export function statusWords(
  standing: Standing,
  status: Status | undefined,
  file: { readonly edited: boolean },
  nowMs: number,
): StatusWords {
  switch (standing) {
    case "off":
      return { text: "$(circle-slash) DeepScope: off", tooltip: ["The language server is not running."], isWarning: false };
    case "missing":
      return {
        text: "$(circle-slash) DeepScope",
        tooltip: ["No Python that was found here has a DeepScope that this extension can use; click to set it up."],
        isWarning: false,
      };
    case "restricted":
      return {
        text: "$(shield) DeepScope: restricted",
        tooltip: ["This workspace is restricted: no interpreter is started, so there are no times, dashboard or runs."],
        isWarning: false,
      };
    case "starting":
      return { text: "$(loading~spin) DeepScope", tooltip: ["Starting the language server"], isWarning: false };
    case "failed":
      return { text: "$(error) DeepScope", tooltip: ["The language server does not run; click for its logs."], isWarning: true };
    case "loading":
      return { text: "$(loading~spin) DeepScope", tooltip: [`Reading ${status?.message ?? "a trace"}`], isWarning: false };
    case "none":
      return { text: "$(flame) DeepScope: no trace", tooltip: ["No trace found; click to choose one."], isWarning: false };
    case "error":
      return { text: "$(warning) DeepScope", tooltip: [status?.message ?? "The trace cannot be read."], isWarning: true };
    case "ready":
      return status?.trace == null
        ? { text: "$(flame) DeepScope", tooltip: [], isWarning: false }
        : ready(status.trace, status, file, nowMs);
  }
}

function ready(trace: ShownTrace, status: Status, file: { edited: boolean }, nowMs: number): StatusWords {
  const baseline = status.baseline ?? undefined;
  const recorded = age(Date.parse(trace.recordedAt), nowMs);
  const changed = file.edited ? " $(edit) text changed since" : "";
  const compared = baseline === undefined ? "" : " $(diff)";
  const newer = status.newer ?? undefined;
  const step = stepTimeWords(status);
  const tooltip = [
    trace.verdict,
    [baseName(trace.program), trace.stage, trace.stepsWords, recorded].filter((word) => word !== "").join(", "),
    ...(step === "" ? [] : [step]),
    ...status.remarks.map(({ detail }) => detail).filter((detail) => detail !== ""),
    trace.path,
    `${trace.device}${trace.metric === "device" ? "" : " (CPU only: no device work in this trace)"}`,
    ...(trace.ranks.length > 1 ? [`${trace.ranks.length} ranks merged`] : []),
    ...(trace.recordedAt === "" ? [] : [`recorded ${trace.recordedAt}`]),
    ...(trace.commit === "" ? [] : [`commit ${trace.commit.slice(0, 12)}${trace.dirty ? ", with local changes" : ""}`]),
    ...(baseline === undefined ? [] : [`compared with ${status.comparison?.isChosen === false ? "the run before, " : ""}${baseline.path}`]),
    ...(newer === undefined ? [] : [`${newer.path} is newer, and no code of it is here`]),
    ...(file.edited ? ["This file's text has changed since it was measured."] : []),
    ...trace.warnings,
  ];
  const shown = step === "" ? trace.stage : step.replace(/^step /, "");
  const text = `$(flame) ${plain(`DeepScope ${shown}`.trim())}${changed}${compared}`;
  return { text, tooltip, isWarning: false }; // what the recorder remarks is no failure
}

/** The time of a step, how it has changed, and what else than the edit may explain that; "" where the trace has no steps. */
export function stepTimeWords({ stepTimeWords, remarks }: Pick<Status, "stepTimeWords" | "remarks">): string {
  return stepTimeWords === "" ? "" : [stepTimeWords, ...remarks.map(({ words }) => words)].join(", ");
}

/** `H100` of `NVIDIA H100 80GB HBM3`: what fits into a status bar. */
export function shortDevice(device: string): string {
  const words = device.split(/\s+/).filter((word) => !/^(nvidia|amd|intel(\(r\))?|tesla|geforce|instinct|\d+gb|hbm\d?e?)$/i.test(word));
  return (words.length > 0 ? words.slice(0, 2).join(" ") : device).slice(0, 24);
}

/** Text in which VS Code sees no `$(icon)`: names come from traces. */
export function plain(text: string): string {
  return text.replaceAll("$(", "$\u200b(");
}

/** Text in which VS Code sees no `[words](command:…)`: it would make a link of it, and run the command at a click. */
export function unlinked(text: string): string {
  return text.replaceAll("](", "]\u200b(");
}

const AGES = [
  { unit: "day", ms: 86_400_000 },
  { unit: "h", ms: 3_600_000 },
  { unit: "min", ms: 60_000 },
] as const;

/** `5 min ago`, `3 days ago`; `just now` below a minute; "" where the time is not known. */
export function age(recordedMs: number, nowMs: number): string {
  if (!Number.isFinite(recordedMs)) {
    return "";
  }
  const passed = nowMs - recordedMs;
  const fitting = AGES.find(({ ms }) => passed >= ms);
  if (fitting === undefined) {
    return "just now";
  }
  const count = Math.floor(passed / fitting.ms);
  return `${count} ${fitting.unit}${fitting.unit === "day" && count > 1 ? "s" : ""} ago`;
}

/** `fit, steps 2–4: step 2.95 → 2.79 s. Waits for data: 41 % of each step, from data.py:46.` */
export function noticeWords(trace: ShownTrace, status: Pick<Status, "stepTimeWords" | "remarks">): string {
  const what = [trace.stage, trace.stepsWords].filter((word) => word !== "").join(", ");
  const step = stepTimeWords(status);
  return `${what}${step === "" ? "" : `: ${step}`}. ${trace.verdict}`;
}
