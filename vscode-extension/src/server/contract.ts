/**
 * What the language server takes and answers: types, and readers that check answers at run time.
 *
 * Made by contract.py from lsp_server/deepscope_lsp; do not edit.
 */

import { dictionary, either, finite, flag, list, natural } from "../shape";
import { nothing, nullable, object, oneOf, text, type Reader } from "../shape";

/** A command that takes `Argument`. */
export interface Command<Argument, Answer> {
  readonly name: string;
  readonly answer: Reader<Answer>;
  /** Never there: it stands for the type. */
  readonly argument?: Argument;
}

function command<Argument, Answer>(name: string, answer: Reader<Answer>): Command<Argument, Answer> {
  return { name, answer };
}

export const depth = oneOf("line", "module", "library", "operator", "kernel");
export type Depth = ReturnType<typeof depth>;

/** What the main number is: the device's time, or the operators' own time on the CPU where no device did any work. */
export const metric = oneOf("device", "cpu_self");
export type Metric = ReturnType<typeof metric>;

/** By which of their numbers lines are sorted. */
export const hotMetric = oneOf("device", "cpu", "wait", "idle", "memory");
export type HotMetric = ReturnType<typeof hotMetric>;

export const flameMetric = oneOf("device", "backward", "cpu");
export type FlameMetric = ReturnType<typeof flameMetric>;

/** A line of the user's, or what its work is made of; `other` is what is too small to be told apart. */
export const frameKind = oneOf("line", "module", "library", "operator", "kernel", "other");
export type FrameKind = ReturnType<typeof frameKind>;

export const state = oneOf("none", "loading", "ready", "error");
export type State = ReturnType<typeof state>;

/** Of a recorded line: its text is what ran, was edited, or is no longer there. */
export const standing = oneOf("same", "edited", "gone");
export type Standing = ReturnType<typeof standing>;

/** `deepscope.hotLines`. */
export interface HotLinesArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  readonly limit?: number;
  /** Only the lines of this open document. */
  readonly uri?: string | null;
}

/** `deepscope.callPaths`; paths below `minShare` are left out. */
export interface CallPathsArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  readonly minShare?: number;
  /** How far below the lines. */
  readonly depth?: Depth;
}

/** `deepscope.linePaths`: the same. */
export interface LinePathsArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  readonly file: string;
  readonly line: number;
  /** How far below the lines. */
  readonly depth?: Depth;
}

/** `deepscope.flamegraph`; nodes below `minShare` of the whole are left out. */
export interface FlameArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  readonly metric?: FlameMetric;
  /** One rank alone; null for all together. */
  readonly rank?: number | null;
  readonly minShare?: number;
  /** How far below the lines. */
  readonly depth?: Depth;
}

/** `deepscope.modules`. */
export interface HotModulesArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  readonly limit?: number;
}

/** Which workspace folder; without it the first that shows a profile. */
export interface Where {
  /** URI of a workspace folder. */
  readonly root?: string | null;
}

/** `deepscope.resolvePath`; `path` as a trace or a dashboard names it. */
export interface ResolveArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  readonly path: string;
  readonly line?: number;
}

/** `deepscope.locate`: a line as recorded. */
export interface RecordedPlaceArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  readonly file: string;
  readonly line: number;
}

/** `deepscope.recordedLine`: a line of an open document as it is now. */
export interface TextPlaceArgument {
  readonly uri: string;
  readonly line: number;
}

/** `deepscope.recordedText`. */
export interface RecordedTextArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  readonly file: string;
}

/** `deepscope.mapFolder`: a file as recorded, and the folder on this machine in which it is somewhere. */
export interface MapFolderArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  readonly file: string;
  readonly folder: string;
}

/** `deepscope.callers` and `showCallers`. */
export interface PlaceArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  /** As recorded. */
  readonly file?: string | null;
  /** An open document, in place of `file`; `line` is then a line of its text now. */
  readonly uri?: string | null;
  readonly line: number;
}

/** `deepscope.annotations`. */
export interface UriArgument {
  readonly uri: string;
}

/** `deepscope.listTraces` and `listRuns`. */
export interface ListArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  readonly limit?: number;
}

/** `deepscope.selectTrace` and `setBaseline`. */
export interface PathArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  /** A trace, a folder or an fsspec URL; null for the newest (or, for the baseline, what is shown now). */
  readonly path?: string | null;
  /** Not the trace alone, but the run that it is of, with all its ranks. */
  readonly run?: boolean;
}

/** `deepscope.hideFinding`; without `file` everywhere, without `line` in the whole file. */
export interface HideArgument {
  /** URI of a workspace folder. */
  readonly root?: string | null;
  readonly code: string;
  readonly file?: string | null;
  /** As recorded. */
  readonly line?: number | null;
}

/** A trace, or all the traces of a run together, that is shown or compared with. */
export interface ShownTrace {
  readonly path: string;
  readonly paths: readonly string[];
  readonly metric: Metric;
  readonly device: string;
  /** ISO 8601; "" where the trace does not say. */
  readonly recordedAt: string;
  readonly program: string;
  /** Mean of a step; null where the trace has none. */
  readonly stepNs: number | null;
  readonly stage: string;
  /** Other stages of the run. */
  readonly alsoRecorded: readonly string[];
  readonly ranks: readonly number[];
  readonly steps: number;
  /** The step chosen, if one was. */
  readonly step: number | null;
  readonly firstStep: number | null;
  readonly lastStep: number | null;
  /** `steps 2–4`, or what is known. */
  readonly stepsWords: string;
  readonly commit: string;
  readonly dirty: boolean;
  readonly deviceNs: number;
  readonly busyNs: number;
  readonly idleNs: number;
  readonly wallNs: number;
  readonly warnings: readonly string[];
}
export const shownTrace: Reader<ShownTrace> = object({
  path: text,
  paths: list(text),
  metric: metric,
  device: text,
  recordedAt: text,
  program: text,
  stepNs: nullable(finite),
  stage: text,
  alsoRecorded: list(text),
  ranks: list(natural),
  steps: natural,
  step: nullable(finite),
  firstStep: nullable(finite),
  lastStep: nullable(finite),
  stepsWords: text,
  commit: text,
  dirty: flag,
  deviceNs: finite,
  busyNs: finite,
  idleNs: finite,
  wallNs: finite,
  warnings: list(text),
});

/** How the trace is compared with the baseline. */
export interface Comparison {
  /** By hand; else it is the run before. */
  readonly isChosen: boolean;
  /** Whether the time of a step differs by more than noise; null where a run of fewer than two steps tells of none. */
  readonly stepsDiffer: boolean | null;
  /** Whether the files that ran are equal, on equal versions of Python and torch; null where it is not known. */
  readonly isSameCode: boolean | null;
}
export const comparison: Reader<Comparison> = object({
  isChosen: flag,
  stepsDiffer: nullable(flag),
  isSameCode: nullable(flag),
});

/** A remark on the time of a step. */
export interface Remark {
  /** `within noise (±12 %)`, `noise unknown`, `same code`, `machine busy (38 %)`. */
  readonly words: string;
  /** The same as a sentence; "" where the words say all. */
  readonly detail: string;
}
export const remark: Reader<Remark> = object({
  words: text,
  detail: text,
});

/** What is shown of a workspace folder: answer of many commands, and the notification `$/deepscope/status`. */
export interface Status {
  readonly state: State;
  readonly message: string;
  /** URI of the workspace folder; null without one. */
  readonly root: string | null;
  readonly trace: ShownTrace | null;
  readonly baseline: ShownTrace | null;
  /** Null without a baseline. */
  readonly comparison: Comparison | null;
  /** The newest run, where an older one is shown because no code of the newest is here. */
  readonly newer: ShownTrace | null;
  /** `step 2.79 s`, beside a baseline `step 2.95 → 2.79 s, -5.4 %`; "" where the trace has no steps. */
  readonly stepTimeWords: string;
  /** What may explain the change besides the edit. */
  readonly remarks: readonly Remark[];
}
export const status: Reader<Status> = object({
  state: state,
  message: text,
  root: nullable(text),
  trace: nullable(shownTrace),
  baseline: nullable(shownTrace),
  comparison: nullable(comparison),
  newer: nullable(shownTrace),
  stepTimeWords: text,
  remarks: list(remark),
});

/** One number of a line, a group of lines or a module. */
export interface HotAmount {
  /** By `device` of the device's busy time; by another metric of the sum over all lines (or modules). */
  readonly share: number;
  /** Share and mean of a step: `38 % · 12.4 ms`. */
  readonly words: string;
}
export const hotAmount: Reader<HotAmount> = object({
  share: finite,
  words: text,
});

/** A measured line with all its numbers. */
export interface HotLine {
  readonly function: string;
  /** As recorded; "" for work that reached no line. */
  readonly file: string;
  /** As recorded; 0 where it is not known. */
  readonly line: number;
  /** Null where the file is not on this machine. */
  readonly uri: string | null;
  /** At the moment of the answer. */
  readonly currentLine: number | null;
  /** Relative to the project's root. */
  readonly shortFile: string;
  /** As it ran. */
  readonly text: string;
  /** What stands at the line's end in an editor. */
  readonly label: string;
  readonly standing: Standing;
  readonly share: number;
  readonly shareWords: string;
  /** With what the line calls. */
  readonly totalShare: number;
  /** Own device time. */
  readonly perStepNs: number;
  /** Own device time per step in the baseline; null where there is none. */
  readonly baselineNs: number | null;
  /** The same with the change since; "" without a baseline. */
  readonly baselineWords: string;
  /** Since the baseline: `+3.10 ms`, `new`; "" where the change is too small to mention, or may be noise. */
  readonly changeWords: string;
  /** The numbers over the whole trace. */
  readonly wholeWords: string;
  /** False where the numbers are those of the whole function, or loop, that begins here. */
  readonly exact: boolean;
  /** By metric: those that are not 0. */
  readonly amounts: Readonly<Record<string, HotAmount>>;
  /** Those of docs/report.md that are not 0. */
  readonly numbers: Readonly<Record<string, number>>;
}
export const hotLine: Reader<HotLine> = object({
  function: text,
  file: text,
  line: natural,
  uri: nullable(text),
  currentLine: nullable(natural),
  shortFile: text,
  text: text,
  label: text,
  standing: standing,
  share: finite,
  shareWords: text,
  totalShare: finite,
  perStepNs: finite,
  baselineNs: nullable(finite),
  baselineWords: text,
  changeWords: text,
  wholeWords: text,
  exact: flag,
  amounts: dictionary(hotAmount),
  numbers: dictionary(finite),
});

/** The lines of a function or of a file together. */
export interface HotGroup {
  /** "" for a file. */
  readonly function: string;
  readonly file: string;
  readonly shortFile: string;
  /** By metric: those that are not 0. */
  readonly amounts: Readonly<Record<string, HotAmount>>;
}
export const hotGroup: Reader<HotGroup> = object({
  function: text,
  file: text,
  shortFile: text,
  amounts: dictionary(hotAmount),
});

/** A line of the baseline that is gone or has no time any more, where it stood; the numbers are the baseline's. */
export interface VanishedLine {
  readonly function: string;
  /** As recorded; "" for work that reached no line. */
  readonly file: string;
  /** As recorded; 0 where it is not known. */
  readonly line: number;
  /** Null where the file is not on this machine. */
  readonly uri: string | null;
  /** At the moment of the answer. */
  readonly currentLine: number | null;
  readonly shortFile: string;
  readonly text: string;
  readonly share: number;
  readonly perStepNs: number;
  /** `-1.50 ms` */
  readonly changeWords: string;
  /** `1.50 ms per step in the baseline (38 %)` */
  readonly timeWords: string;
}
export const vanishedLine: Reader<VanishedLine> = object({
  function: text,
  file: text,
  line: natural,
  uri: nullable(text),
  currentLine: nullable(natural),
  shortFile: text,
  text: text,
  share: finite,
  perStepNs: finite,
  changeWords: text,
  timeWords: text,
});

/** Answer of `deepscope.hotLines`. */
export interface HotLines {
  readonly metric: Metric;
  /** What a time is of: `per step`, or `in the trace` where it has no steps. */
  readonly stepWords: string;
  readonly lines: readonly HotLine[];
  readonly functions: readonly HotGroup[];
  readonly files: readonly HotGroup[];
  readonly vanished: readonly VanishedLine[];
  /** The times of all vanished lines together: `-3.00 ms`. */
  readonly vanishedWords: string;
}
export const hotLines: Reader<HotLines> = object({
  metric: metric,
  stepWords: text,
  lines: list(hotLine),
  functions: list(hotGroup),
  files: list(hotGroup),
  vanished: list(vanishedLine),
  vanishedWords: text,
});

/** A node of the call tree; what is the same under one parent is one node. */
export interface CallPath {
  readonly function: string;
  /** As recorded; "" for work that reached no line. */
  readonly file: string;
  /** As recorded; 0 where it is not known. */
  readonly line: number;
  /** Null where the file is not on this machine. */
  readonly uri: string | null;
  /** At the moment of the answer. */
  readonly currentLine: number | null;
  readonly kind: FrameKind;
  /** To be shown below what holds it: a line's function, of a module below another one the rest of its path. */
  readonly name: string;
  /** As recorded. */
  readonly wholeName: string;
  readonly selfNs: number;
  readonly totalNs: number;
  readonly totalCpuNs: number;
  readonly totalBackwardNs: number;
  /** Of what is below a line; 0 for a line. */
  readonly calls: number;
  readonly share: number;
  readonly children: readonly CallPath[];
}
export const callPath: Reader<CallPath> = object({
  function: text,
  file: text,
  line: natural,
  uri: nullable(text),
  currentLine: nullable(natural),
  kind: frameKind,
  name: text,
  wholeName: text,
  selfNs: finite,
  totalNs: finite,
  totalCpuNs: finite,
  totalBackwardNs: finite,
  calls: finite,
  share: finite,
  children: list((value, at) => callPath(value, at)),
});

/** Answer of `deepscope.callPaths`: the whole call tree. */
export interface CallPaths {
  readonly metric: Metric;
  readonly roots: readonly CallPath[];
}
export const callPaths: Reader<CallPaths> = object({
  metric: metric,
  roots: list(callPath),
});

/** Where something stands: as recorded, and where it is here. */
export interface Place {
  readonly function: string;
  /** As recorded; "" for work that reached no line. */
  readonly file: string;
  /** As recorded; 0 where it is not known. */
  readonly line: number;
  /** Null where the file is not on this machine. */
  readonly uri: string | null;
  /** At the moment of the answer. */
  readonly currentLine: number | null;
}
export const place: Reader<Place> = object({
  function: text,
  file: text,
  line: natural,
  uri: nullable(text),
  currentLine: nullable(natural),
});

/** A line in a chain of calls, or a part of its work; `children` are its callers or what is below, largest first. */
export interface LinePath {
  readonly function: string;
  /** As recorded; "" for work that reached no line. */
  readonly file: string;
  /** As recorded; 0 where it is not known. */
  readonly line: number;
  /** Null where the file is not on this machine. */
  readonly uri: string | null;
  /** At the moment of the answer. */
  readonly currentLine: number | null;
  readonly kind: FrameKind;
  /** To be shown below what holds it: a line's function, of a module below another one the rest of its path. */
  readonly name: string;
  /** As recorded. */
  readonly wholeName: string;
  /** Of a caller: the time of the line asked for on the paths through this one. Of a callee: its own total. */
  readonly ns: number;
  readonly timeWords: string;
  /** Of what is below: `own 2 ms, backward 1 ms, 12 calls`, those that are not 0. */
  readonly detailWords: string;
  readonly children: readonly LinePath[];
}
export const linePath: Reader<LinePath> = object({
  function: text,
  file: text,
  line: natural,
  uri: nullable(text),
  currentLine: nullable(natural),
  kind: frameKind,
  name: text,
  wholeName: text,
  ns: finite,
  timeWords: text,
  detailWords: text,
  children: list((value, at) => linePath(value, at)),
});

/** Answer of `deepscope.linePaths`: who calls a line, what it calls, and what its own work is made of. */
export interface LinePaths {
  /** Null for a line that is on no path. */
  readonly line: Place | null;
  readonly stepWords: string;
  readonly callers: readonly LinePath[];
  readonly callees: readonly LinePath[];
}
export const linePaths: Reader<LinePaths> = object({
  line: nullable(place),
  stepWords: text,
  callers: list(linePath),
  callees: list(linePath),
});

/**
 * A line on a call path, or a part of its work.
 *
 * The file of a module is that of its class. Operators and kernels have none.
 */
export interface Frame {
  readonly function: string;
  /** As recorded; "" for work that reached no line. */
  readonly file: string;
  /** As recorded; 0 where it is not known. */
  readonly line: number;
  /** Null where the file is not on this machine. */
  readonly uri: string | null;
  /** At the moment of the answer. */
  readonly currentLine: number | null;
  readonly kind: FrameKind;
  /** To be shown below what holds it: a line's function, of a module below another one the rest of its path. */
  readonly name: string;
  /** As recorded. */
  readonly wholeName: string;
}
export const frame: Reader<Frame> = object({
  function: text,
  file: text,
  line: natural,
  uri: nullable(text),
  currentLine: nullable(natural),
  kind: frameKind,
  name: text,
  wholeName: text,
});

/** A box of a flame graph. */
export interface FlameNode {
  /** Index into the graph's `frames`; -1 for work that reached no line. */
  readonly frame: number;
  readonly value: number;
  readonly self: number;
  readonly valuePerStep: number;
  readonly selfPerStep: number;
  /** Time of a step, its share, and what is known besides: `12.4 ms · 38 %, own 2 ms, backward 1 ms, 12 calls`. */
  readonly words: string;
  readonly children: readonly FlameNode[];
}
export const flameNode: Reader<FlameNode> = object({
  frame: finite,
  value: finite,
  self: finite,
  valuePerStep: finite,
  selfPerStep: finite,
  words: text,
  children: list((value, at) => flameNode(value, at)),
});

/** Answer of `deepscope.flamegraph`. */
export interface FlameGraph {
  readonly metric: FlameMetric;
  readonly of: Metric;
  /** Null for all ranks together. */
  readonly rank: number | null;
  readonly unit: "nanoseconds";
  readonly total: number;
  readonly totalPerStep: number;
  readonly totalWords: string;
  readonly stepWords: string;
  readonly depth: Depth;
  /** All lines of the profile in its order, behind them what is below them in this graph. */
  readonly frames: readonly Frame[];
  readonly roots: readonly FlameNode[];
}
export const flameGraph: Reader<FlameGraph> = object({
  metric: flameMetric,
  of: metric,
  rank: nullable(finite),
  unit: oneOf("nanoseconds"),
  total: finite,
  totalPerStep: finite,
  totalWords: text,
  stepWords: text,
  depth: depth,
  frames: list(frame),
  roots: list(flameNode),
});

/** A module of the model. */
export interface HotModule {
  /** "" where it is not known. */
  readonly path: string;
  readonly className: string;
  readonly label: string;
  /** With what is in it. */
  readonly share: number;
  /** `own 1.00 ms`; "" where it has no time of its own. */
  readonly ownWords: string;
  /** By metric: device time includes what is in the module; the other numbers are its own. */
  readonly amounts: Readonly<Record<string, HotAmount>>;
  readonly numbers: Readonly<Record<string, number>>;
}
export const hotModule: Reader<HotModule> = object({
  path: text,
  className: text,
  label: text,
  share: finite,
  ownWords: text,
  amounts: dictionary(hotAmount),
  numbers: dictionary(finite),
});

/** Answer of `deepscope.modules`. */
export interface HotModules {
  readonly metric: Metric;
  readonly stepWords: string;
  readonly modules: readonly HotModule[];
}
export const hotModules: Reader<HotModules> = object({
  metric: metric,
  stepWords: text,
  modules: list(hotModule),
});

/** A replacement within one line of a finding's file, `old` at its first place in the text that ran. */
export interface Edit {
  readonly line: number;
  readonly old: string;
  readonly new: string;
}
export const edit: Reader<Edit> = object({
  line: finite,
  old: text,
  new: text,
});

/** What to do about a finding: in words, and as edits where a machine can make them, all together or none. */
export interface Remedy {
  readonly text: string;
  readonly edits: readonly Edit[];
}
export const remedy: Reader<Remedy> = object({
  text: text,
  edits: list(edit),
});

/** A finding with its place here. */
export interface FoundFinding {
  /** Stable: `DS001`. */
  readonly code: string;
  readonly title: string;
  /** By the share of the wall time that would be saved: from a tenth, from a fiftieth, less. */
  readonly severity: "hint" | "info" | "warning";
  /** As recorded; "" where no line is known. */
  readonly file: string;
  /** 0 where no line is known. */
  readonly line: number;
  readonly function: string;
  readonly message: string;
  /** Figures by name: `…_ns` and `…_bytes` over the whole profile, means in `…_us`; integers add up over ranks. */
  readonly evidence: Readonly<Record<string, number | string>>;
  /** The most wall time that can be saved, over the whole profile. */
  readonly saving_ns: number;
  readonly remedy: Remedy;
  /** The page about it, below the project's root and in the installed package: `docs/findings/DS001.md`. */
  readonly doc: string;
  readonly uri: string | null;
  readonly currentLine: number | null;
  readonly words: string;
}
export const foundFinding: Reader<FoundFinding> = object({
  code: text,
  title: text,
  severity: oneOf("hint", "info", "warning"),
  file: text,
  line: finite,
  function: text,
  message: text,
  evidence: dictionary(either(finite, text)),
  saving_ns: finite,
  remedy: remedy,
  doc: text,
  uri: nullable(text),
  currentLine: nullable(natural),
  words: text,
});

/** Where a path stands here that a trace or a dashboard names. */
export interface ResolvedPath {
  readonly uri: string;
  readonly line: number;
  /** The trace names it as user code. */
  readonly known: boolean;
}
export const resolvedPath: Reader<ResolvedPath> = object({
  uri: text,
  line: natural,
  known: flag,
});

/** Where a recorded line stands at this moment. */
export interface Located {
  readonly uri: string;
  readonly line: number;
  /** Where the line is gone, `line` is the one above its place. */
  readonly standing: Standing;
}
export const located: Reader<Located> = object({
  uri: text,
  line: natural,
  standing: standing,
});

/** A line as it was recorded: the name of a line that no edit changes. */
export interface RecordedLine {
  readonly file: string;
  readonly line: number;
}
export const recordedLine: Reader<RecordedLine> = object({
  file: text,
  line: natural,
});

/** A line that calls another. */
export interface Caller {
  readonly function: string;
  /** As recorded; "" for work that reached no line. */
  readonly file: string;
  /** As recorded; 0 where it is not known. */
  readonly line: number;
  /** Null where the file is not on this machine. */
  readonly uri: string | null;
  /** At the moment of the answer. */
  readonly currentLine: number | null;
  readonly shortFile: string;
  readonly deviceNs: number;
  readonly cpuNs: number;
  /** This line ran the backward pass of the other, and called nothing. */
  readonly backward: boolean;
  readonly label: string;
}
export const caller: Reader<Caller> = object({
  function: text,
  file: text,
  line: natural,
  uri: nullable(text),
  currentLine: nullable(natural),
  shortFile: text,
  deviceNs: finite,
  cpuNs: finite,
  backward: flag,
  label: text,
});

/** A measured line of an open document. */
export interface AnnotatedLine {
  /** As the text is now. */
  readonly line: number;
  readonly recordedLine: number;
  readonly function: string;
  readonly label: string;
  readonly tooltip: string;
  readonly share: number;
  readonly totalShare: number;
  /** The largest of its shares, waiting and idling among them. */
  readonly weight: number;
  /** Why the number may not be that of this text. */
  readonly mark: "" | "edited" | "file changed since" | "file newer than trace";
  readonly numbers: Readonly<Record<string, number>>;
}
export const annotatedLine: Reader<AnnotatedLine> = object({
  line: natural,
  recordedLine: natural,
  function: text,
  label: text,
  tooltip: text,
  share: finite,
  totalShare: finite,
  weight: finite,
  mark: oneOf("", "edited", "file changed since", "file newer than trace"),
  numbers: dictionary(finite),
});

/** A trace in the configured places; what its name and head do not say is "" or null until it was read once. */
export interface ListedTrace {
  readonly path: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly sizeWords: string;
  /** Since the epoch. */
  readonly recordedNs: number;
  /** The same for all traces of one run. */
  readonly run: string;
  readonly program: string;
  /** Mean of a step. */
  readonly stepNs: number | null;
  /** `2.79 s a step` */
  readonly stepTimeWords: string;
  readonly rank: number | null;
  readonly worldSize: number;
  /** Which of the run's recordings it is, from 0. */
  readonly window: number | null;
  readonly stage: string;
  readonly device: string;
  readonly commit: string;
  /** Whether it is shown. */
  readonly selected: boolean;
  /** Why it cannot be read; "" where nobody tried, or it can. */
  readonly problem: string;
}
export const listedTrace: Reader<ListedTrace> = object({
  path: text,
  name: text,
  sizeBytes: finite,
  sizeWords: text,
  recordedNs: finite,
  run: text,
  program: text,
  stepNs: nullable(finite),
  stepTimeWords: text,
  rank: nullable(natural),
  worldSize: finite,
  window: nullable(finite),
  stage: text,
  device: text,
  commit: text,
  selected: flag,
  problem: text,
});

/** The traces of one run, the newest first. */
export interface Run {
  readonly id: string;
  readonly recordedNs: number;
  readonly program: string;
  /** Mean over the ranks. Where the training is among the traces, it is the training's. "" where it is not known. */
  readonly stepTimeWords: string;
  /** How many. */
  readonly ranks: number;
  readonly selected: boolean;
  readonly traces: readonly ListedTrace[];
}
export const run: Reader<Run> = object({
  id: text,
  recordedNs: finite,
  program: text,
  stepTimeWords: text,
  ranks: finite,
  selected: flag,
  traces: list(listedTrace),
});

/** The notification of a changed status. */
export const STATUS_NOTIFICATION = "$/deepscope/status";

export const commands = {
  /** The hottest lines of the trace, or of one open document. */
  hotLines: command<HotLinesArgument, HotLines>("deepscope.hotLines", hotLines),
  /** The call tree with own and total times. */
  callPaths: command<CallPathsArgument, CallPaths>("deepscope.callPaths", callPaths),
  /** Who calls a line, what it calls and what its work is made of, on all paths. */
  linePaths: command<LinePathsArgument, LinePaths>("deepscope.linePaths", linePaths),
  /** Frames and the tree of their times. */
  flamegraph: command<FlameArgument, FlameGraph>("deepscope.flamegraph", flameGraph),
  /** The modules with the most device time. */
  modules: command<HotModulesArgument, HotModules>("deepscope.modules", hotModules),
  /** All findings that are not hidden, the largest saving first, also those of no line. */
  findings: command<Where, readonly FoundFinding[]>("deepscope.findings", list(foundFinding)),
  /** Where a path stands here that a trace or a dashboard names. */
  resolvePath: command<ResolveArgument, ResolvedPath | null>("deepscope.resolvePath", nullable(resolvedPath)),
  /** Where a recorded line stands at this moment, and whether it is what ran; null where its file is not here. */
  locate: command<RecordedPlaceArgument, Located | null>("deepscope.locate", nullable(located)),
  /** The recorded line that a line of an open document is, unchanged or edited; null for one that did not run. */
  recordedLine: command<TextPlaceArgument, RecordedLine | null>("deepscope.recordedLine", nullable(recordedLine)),
  /** A file as it ran; null where the trace has no text of it. */
  recordedText: command<RecordedTextArgument, string | null>("deepscope.recordedText", nullable(text)),
  /** Finds a recorded file in a folder from now on, and what lay beside it; answers what was learnt. */
  mapFolder: command<MapFolderArgument, Readonly<Record<string, string>>>("deepscope.mapFolder", dictionary(text)),
  /** Who calls a line's function. */
  callers: command<PlaceArgument, readonly Caller[]>("deepscope.callers", list(caller)),
  /** The same, and the user picks one to go to. */
  showCallers: command<PlaceArgument, readonly Caller[]>("deepscope.showCallers", list(caller)),
  /** All measured lines of an open document as they stand now. */
  annotations: command<UriArgument, readonly AnnotatedLine[]>("deepscope.annotations", list(annotatedLine)),
  /** The traces in the configured places, the newest first. */
  listTraces: command<ListArgument, readonly ListedTrace[]>("deepscope.listTraces", list(listedTrace)),
  /** The same by their runs. */
  listRuns: command<ListArgument, readonly Run[]>("deepscope.listRuns", list(run)),
  /** Shows a trace of the user's choice from now on, or the newest again. */
  selectTrace: command<PathArgument, Status>("deepscope.selectTrace", status),
  /** Compares with another trace, or with what is shown now once a newer trace is there. */
  setBaseline: command<PathArgument, Status>("deepscope.setBaseline", status),
  /** Compares no longer. */
  clearBaseline: command<Where, null>("deepscope.clearBaseline", nothing),
  /** Looks for traces now and loads what is to be shown. */
  reload: command<Where, Status>("deepscope.reload", status),
  /** What is shown now. */
  status: command<Where, Status>("deepscope.status", status),
  /** Hides a diagnostic's code on a line, in a file or everywhere; remembered for the workspace folder. */
  hideFinding: command<HideArgument, null>("deepscope.hideFinding", nothing),
  /** Shows everything again; answers what was hidden. */
  unhideFindings: command<Where, readonly string[]>("deepscope.unhideFindings", list(text)),
};
