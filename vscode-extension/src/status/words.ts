/** What the status item says. */

import type { ShownTrace, Status } from "../server/contract";
import { age } from "../units";

/** Where the extension stands as a whole. */
export type Standing = "off" | "restricted" | "starting" | "failed" | Status["state"];

export interface StatusWords {
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
  const trace = status?.trace ?? undefined;
  switch (standing) {
    case "off":
      return { text: "$(circle-slash) DeepScope: off", tooltip: ["The language server is not running."], isWarning: false };
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
      return trace === undefined
        ? { text: "$(flame) DeepScope", tooltip: [], isWarning: false }
        : ready(trace, status?.baseline ?? undefined, file, nowMs);
  }
}

function ready(trace: ShownTrace, baseline: ShownTrace | undefined, file: { edited: boolean }, nowMs: number): StatusWords {
  const recorded = age(Date.parse(trace.recordedAt), nowMs);
  const parts = [trace.stage, shortDevice(trace.device), recorded].filter((part) => part !== "");
  const changed = file.edited ? " $(edit) text changed since" : "";
  const compared = baseline === undefined ? "" : " $(diff)";
  const tooltip = [
    trace.path,
    `${trace.device}${trace.metric === "device" ? "" : " (CPU only: no device work in this trace)"}`,
    stepWords(trace),
    ...(trace.ranks.length > 1 ? [`${trace.ranks.length} ranks merged`] : []),
    ...(trace.recordedAt === "" ? [] : [`recorded ${trace.recordedAt}`]),
    ...(trace.commit === "" ? [] : [`commit ${trace.commit.slice(0, 12)}${trace.dirty ? ", with local changes" : ""}`]),
    ...(baseline === undefined ? [] : [`compared with ${baseline.path}`]),
    ...(file.edited ? ["This file's text has changed since it was measured."] : []),
    ...trace.warnings,
  ];
  return { text: `$(flame) ${plain(parts.join(" · "))}${changed}${compared}`, tooltip, isWarning: trace.warnings.length > 0 };
}

/** `steps 2–4`, `1 step`, or what the numbers allow. */
export function stepWords(trace: Pick<ShownTrace, "steps" | "firstStep" | "lastStep">): string {
  if (trace.steps === 0) {
    return "the whole recording";
  }
  if (trace.firstStep !== null && trace.lastStep !== null) {
    return trace.firstStep === trace.lastStep ? `step ${trace.firstStep}` : `steps ${trace.firstStep}–${trace.lastStep}`;
  }
  return trace.steps === 1 ? "1 step" : `${trace.steps} steps`;
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

/** Text in which VS Code sees no `[words](command:…)`, which it would make a link of, and run when it is clicked. */
export function unlinked(text: string): string {
  return text.replaceAll("](", "]\u200b(");
}
