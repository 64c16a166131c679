/** What the language server answers (docs/lsp.md): the types, and the readers that check them at run time. */

import { dictionary, finite, flag, list, natural, nullable, object, oneOf, text, withDefault, type Reader } from "../shape";

const numbers = dictionary(finite);

/** Where something stands: as recorded, and where it is here (null where it is not on this machine). */
const place = {
  function: text,
  file: text,
  line: natural,
  uri: nullable(text),
  currentLine: nullable(natural),
};

export const hotLine = object({
  ...place,
  shortFile: text,
  text,
  label: text,
  share: finite,
  totalShare: finite,
  perStepNs: finite,
  /** Of the baseline, per step; null where there is none. */
  baselineNs: nullable(finite),
  exact: flag,
  numbers,
});
/** A line of the baseline that is gone, or has no time any more; its numbers are the baseline's. */
export const vanishedLine = object({ ...place, shortFile: text, text, share: finite, perStepNs: finite });
export const hotLines = object({
  metric: text,
  stepWords: withDefault(text, ""),
  lines: list(hotLine),
  vanished: withDefault(list(vanishedLine), []),
});

export const module = object({ path: text, className: text, label: text, share: finite, numbers });
export const modules = object({ metric: text, stepWords: withDefault(text, ""), modules: list(module) });

export interface CallPath {
  readonly function: string;
  readonly file: string;
  readonly line: number;
  readonly uri: string | null;
  readonly currentLine: number | null;
  readonly selfNs: number;
  readonly totalNs: number;
  readonly totalCpuNs: number;
  readonly share: number;
  readonly children: readonly CallPath[];
}
export const callPath: Reader<CallPath> = (value, at) =>
  object({ ...place, selfNs: finite, totalNs: finite, totalCpuNs: finite, share: finite, children: list(callPath) })(value, at);
export const callPaths = object({ metric: text, roots: list(callPath) });

export const caller = object({ ...place, shortFile: text, deviceNs: finite, cpuNs: finite, label: text });
export const callers = list(caller);

export interface FlameNode {
  readonly frame: number;
  readonly value: number;
  readonly self: number;
  readonly children: readonly FlameNode[];
}
export const flameNode: Reader<FlameNode> = (value, at) =>
  object({ frame: finite, value: finite, self: finite, children: list(flameNode) })(value, at);
export const flameMetric = oneOf("device", "backward", "cpu");
export const flameGraph = object({
  metric: text,
  total: finite,
  frames: list(object(place)),
  roots: list(flameNode),
});

export const annotation = object({
  line: natural,
  recordedLine: natural,
  label: text,
  share: finite,
  weight: finite,
  mark: text,
});
export const annotations = list(annotation);

export const listedTrace = object({
  path: text,
  name: text,
  sizeBytes: finite,
  recordedNs: finite,
  selected: flag,
  run: withDefault(text, ""),
  program: withDefault(text, ""),
  /** Mean duration of a step; null until the trace was read once, or where it has none. */
  stepNs: nullable(finite),
  rank: nullable(natural),
  stage: withDefault(text, ""),
  device: withDefault(text, ""),
  commit: withDefault(text, ""),
});
export const listedTraces = list(listedTrace);

export const shownTrace = object({
  path: text,
  paths: list(text),
  metric: text,
  device: text,
  recordedAt: text,
  program: withDefault(text, ""),
  /** Mean duration of a step; null where the trace has none. */
  stepNs: nullable(finite),
  stage: text,
  ranks: list(natural),
  steps: natural,
  firstStep: nullable(finite),
  lastStep: nullable(finite),
  /** The step chosen, if one was. */
  step: nullable(finite),
  commit: text,
  dirty: flag,
  deviceNs: finite,
  busyNs: finite,
  warnings: list(text),
});
export const status = object({
  state: oneOf("loading", "ready", "none", "error"),
  message: text,
  root: nullable(text),
  trace: nullable(shownTrace),
  baseline: nullable(shownTrace),
  comparison: nullable(
    object({
      /** By hand; else it is the run before. */
      isChosen: flag,
      /** Whether all steps of one run were longer than all of the other; null where that cannot be told. */
      stepsDiffer: nullable(flag),
    }),
  ),
  /** The newest run, where another one is shown since no code of this one is here. */
  newer: nullable(shownTrace),
});

/** Where a recorded line stands: still the one that ran, edited, or gone (then the line above its place). */
export const located = nullable(object({ uri: text, line: natural, standing: oneOf("same", "edited", "gone") }));
/** A line as it was recorded, the one name that no edit changes. */
export interface RecordedLine {
  readonly file: string;
  /** From 1. */
  readonly line: number;
}
export const recordedLine: Reader<RecordedLine | null> = nullable(object({ file: text, line: natural }));

/** A file as it ran; null where the trace has no text of it. */
export const recordedText = nullable(text);
/** Recorded folders and where they are here. */
export const mappings = dictionary(text);

export const resolvedPath = nullable(object({ uri: text, line: natural, known: flag }));

export type HotLine = ReturnType<typeof hotLine>;
export type HotLines = ReturnType<typeof hotLines>;
export type VanishedLine = ReturnType<typeof vanishedLine>;
export type Module = ReturnType<typeof module>;
export type Modules = ReturnType<typeof modules>;
export type CallPaths = ReturnType<typeof callPaths>;
export type Caller = ReturnType<typeof caller>;
export type FlameMetric = ReturnType<typeof flameMetric>;
export type FlameGraph = ReturnType<typeof flameGraph>;
export type Annotation = ReturnType<typeof annotation>;
export type ListedTrace = ReturnType<typeof listedTrace>;
export type ShownTrace = ReturnType<typeof shownTrace>;
export type Status = ReturnType<typeof status>;
export type Located = ReturnType<typeof located>;
export type ResolvedPath = ReturnType<typeof resolvedPath>;
