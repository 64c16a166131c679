/**
 * What the dashboard's pages ask and are answered: types, and readers that check answers at run time.
 *
 * Made by contract.py from integrations/deepscope/dashboard; do not edit.
 */

import { either, finite, flag, list, nullable, object, oneOf, text, type Reader } from "../shape";

/** A question that takes `Asked`. */
export interface Ask<Asked, Answer> {
  readonly name: string;
  readonly answer: Reader<Answer>;
  /** Never there: it stands for the type. */
  readonly asked?: Asked;
}

function ask<Asked, Answer>(name: string, answer: Reader<Answer>): Ask<Asked, Answer> {
  return { name, answer };
}

export const cellKind = oneOf("text", "place", "time", "bytes", "count", "share", "flops", "rate", "bandwidth");
export type CellKind = ReturnType<typeof cellKind>;

/** What of a line is compared: what it costs the run, or its device time alone. */
export const comparedNumber = oneOf("cost", "self");
export type ComparedNumber = ReturnType<typeof comparedNumber>;

/** What the rows of a comparison are. */
export const comparedTable = oneOf("line", "operator", "kernel", "module", "phase", "step");
export type ComparedTable = ReturnType<typeof comparedTable>;

export const depth = oneOf("line", "module", "library", "operator", "kernel");
export type Depth = ReturnType<typeof depth>;

export const detail = oneOf("shapes", "stacks");
export type Detail = ReturnType<typeof detail>;

/** Where a file belongs: the project, other user code, recorded lines of libraries, whose time is the user's. */
export const fileGroup = oneOf("project", "outside", "library");
export type FileGroup = ReturnType<typeof fileGroup>;

/** From the outermost line down to the work, or from the work up to its callers. */
export const flameDirection = oneOf("down", "up");
export type FlameDirection = ReturnType<typeof flameDirection>;

export const flameMetric = oneOf("device", "backward", "cpu");
export type FlameMetric = ReturnType<typeof flameMetric>;

export const grouping = oneOf("name", "shapes", "stacks", "type");
export type Grouping = ReturnType<typeof grouping>;

export const kernelKind = oneOf("kernel", "memcpy", "memset", "collective");
export type KernelKind = ReturnType<typeof kernelKind>;

export const linkKind = oneOf("launch", "backward", "wait");
export type LinkKind = ReturnType<typeof linkKind>;

export const nodeKind = oneOf("line", "module", "library", "operator", "kernel", "other");
export type NodeKind = ReturnType<typeof nodeKind>;

export const owner = oneOf("line", "module");
export type Owner = ReturnType<typeof owner>;

/** What has become of a row: `unknown` where nothing tells of noise. */
export const rowVerdict = oneOf("slower", "faster", "within noise", "new", "gone", "unknown");
export type RowVerdict = ReturnType<typeof rowVerdict>;

export const section = oneOf("step", "span", "overlap", "idle", "device");
export type Section = ReturnType<typeof section>;

export const severity = oneOf("warning", "info", "hint");
export type Severity = ReturnType<typeof severity>;

export const sliceKind = oneOf("step", "phase", "annotation", "frame", "line", "library", "module", "operator", "runtime", "kernel", "copy", "collective", "span", "other");
export type SliceKind = ReturnType<typeof sliceKind>;

export const trackKind = oneOf("steps", "thread", "stream");
export type TrackKind = ReturnType<typeof trackKind>;

export const unit = oneOf("bytes", "percent", "count", "bytesPerSecond", "perSecond", "watts", "megahertz", "celsius");
export type Unit = ReturnType<typeof unit>;

/** What a page asks; each field is a word of the query. */
export type Question = Readonly<Record<string, never>>;

/** Which profile: all else is its training stage, all ranks merged, all steps. */
export interface Choice {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
}

/** Which file. */
export interface FileQuestion {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  /** As recorded, whose name may be empty. */
  readonly file?: string;
}

/** Which line. */
export interface LineQuestion {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  /** As recorded; "" for the work of no user line. */
  readonly file?: string;
  readonly line?: number;
  /** Where a line runs in several functions (a comprehension's); "" for the one that costs most. */
  readonly function?: string;
  /** Whether modules that differ in a number alone become one: `layers.*`. */
  readonly fold?: boolean;
}

/** What to draw. */
export interface FlameQuestion {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  readonly metric?: FlameMetric;
  readonly depth?: Depth;
  readonly direction?: FlameDirection;
  /** Another run's id, to which the difference is shown. */
  readonly baseline?: string;
}

/** What was live at a moment. The rank, if any, is `DeviceCurve.rank`. */
export interface MomentQuestion {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  readonly device?: string;
  /** On the trace's clock: nanoseconds in digits. */
  readonly at?: string;
}

/** The curve in a window. The rank, if any, is `DeviceCurve.rank`. */
export interface WindowQuestion {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  readonly device?: string;
  /** `DeviceCurve.begin`. */
  readonly zero?: string;
  /** From there. */
  readonly beginNs?: number;
  readonly endNs?: number;
}

/** A rank among those of the chosen run. */
export interface RankChoice {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  readonly of?: number;
}

/** Which run is compared with which. */
export interface CompareQuestion {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  /** As `Run.id` has it: the run before; "" for the one that was recorded before the chosen one. */
  readonly baseline?: string;
  readonly by?: ComparedTable;
  readonly number?: ComparedNumber;
}

/** Which advice's page. */
export interface FindingPageAsked {
  readonly code: string;
}

/** Which operators, and what makes a row. */
export interface OperatorsAsked {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  readonly by?: Grouping;
}

/** Which row of the operators. */
export interface OperatorAsked {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  readonly by?: Grouping;
  readonly key: string;
}

/** Which row of the kernels. */
export interface KernelAsked {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  readonly key: string;
}

/** How modules are shown. */
export interface ModulesAsked {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  /** Layers that are alike as one row. */
  readonly folded?: boolean;
}

/** What is seen of a timeline. */
export interface ViewedStretch {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  /** In nanoseconds from the timeline's begin. */
  readonly begin: number;
  readonly end: number;
  /** Their numbers with commas between; "" for all, "none" for none. */
  readonly tracks?: string;
  /** How wide it is drawn. */
  readonly pixels: number;
}

/** One slice. */
export interface OneSlice {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  readonly slice: number;
}

/** A stretch of time on some tracks. */
export interface Stretch {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  /** In nanoseconds from the timeline's begin. */
  readonly begin: number;
  readonly end: number;
  /** Their numbers with commas between; "" for all, "none" for none. */
  readonly tracks?: string;
}

/** Slices whose names hold a text. */
export interface TextSearch {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  readonly text: string;
  /** Those are told that start then or later. */
  readonly fromNs?: number;
  readonly limit?: number;
  /** With commas between; "" for all. */
  readonly kinds?: string;
}

/** Slices that belong to a line of code. */
export interface LineSearch {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  /** As recorded. */
  readonly file: string;
  readonly line: number;
  readonly fromNs?: number;
  readonly limit?: number;
}

/** The slices of a kind that bear a name. */
export interface DurationsOf {
  /** As `Run.id` has it; "" for the newest. */
  readonly run?: string;
  readonly rank?: number | null;
  readonly stage?: string | null;
  readonly step?: number | null;
  readonly phase?: string;
  readonly module?: string;
  readonly name: string;
  readonly kind: SliceKind;
}

/** A run that can be chosen. */
export interface Run {
  readonly id: string;
  readonly title: string;
  /** Its folder, as seen from what is shown; "" where it lies there itself. */
  readonly name: string;
  readonly folder: string;
  /** ISO 8601 in UTC. */
  readonly recordedAt: string;
  /** That its traces name; empty for a single process. */
  readonly ranks: readonly number[];
  /** The one first that is shown when none is chosen. */
  readonly stages: readonly string[];
  /** Of that stage. `id`, `~` and the number of one is a run's word for that window alone, in place of the newest. */
  readonly windows: readonly number[];
  readonly traces: number;
  /** Of its traces. */
  readonly sizeBytes: number;
  /** Why it cannot be shown; "" where nothing is known against it. */
  readonly problem: string;
}
export const run: Reader<Run> = object({
  id: text,
  title: text,
  name: text,
  folder: text,
  recordedAt: text,
  ranks: list(finite),
  stages: list(text),
  windows: list(finite),
  traces: finite,
  sizeBytes: finite,
  problem: text,
});

/** The runs that there are, the newest first. */
export interface Runs {
  readonly runs: readonly Run[];
  /** Of DeepScope. */
  readonly version: string;
}
export const runs: Reader<Runs> = object({
  runs: list(run),
  version: text,
});

/** What a page asks now and then: it changes when there is something new. */
export interface News {
  /** Another one after each start of the server. */
  readonly server: string;
  /** Another one when runs or traces came, went or were written again. */
  readonly runs: string;
}
export const news: Reader<News> = object({
  server: text,
  runs: text,
});

/** One thing that is known. */
export interface Fact {
  readonly label: string;
  readonly value: string;
}
export const fact: Reader<Fact> = object({
  label: text,
  value: text,
});

/** What is shown, in the words that stand above every page. */
export interface Header {
  /** `Run.id`. */
  readonly run: string;
  readonly title: string;
  /** Whether devices worked; else times of work are operators' own times on the CPU. */
  readonly isDevice: boolean;
  readonly device: string;
  readonly stage: string;
  /** The chosen one; None for all of them merged. */
  readonly rank: number | null;
  /** In this profile. */
  readonly ranks: readonly number[];
  readonly step: number | null;
  /** That can be chosen. */
  readonly steps: readonly number[];
  /** Where this was recorded. */
  readonly facts: readonly Fact[];
  /** What a reader should know before the numbers: warnings, what is missing. */
  readonly notes: readonly string[];
  readonly hasLines: boolean;
  readonly hasMemory: boolean;
  readonly hasCollectives: boolean;
  /** Whether the run has several ranks, whichever of them is chosen, collectives, or tables of an Ascend cluster. */
  readonly hasRanks: boolean;
  readonly hasModules: boolean;
}
export const header: Reader<Header> = object({
  run: text,
  title: text,
  isDevice: flag,
  device: text,
  stage: text,
  rank: nullable(finite),
  ranks: list(finite),
  step: nullable(finite),
  steps: list(finite),
  facts: list(fact),
  notes: list(text),
  hasLines: flag,
  hasMemory: flag,
  hasCollectives: flag,
  hasRanks: flag,
  hasModules: flag,
});

/** A number with its name. */
export interface Figure {
  readonly label: string;
  readonly value: number;
  readonly kind: CellKind;
  /** What it means, in a sentence. */
  readonly help: string;
}
export const figure: Reader<Figure> = object({
  label: text,
  value: finite,
  kind: cellKind,
  help: text,
});

/** A time that is a part of another. */
export interface Part {
  readonly name: string;
  readonly timeNs: number;
  readonly share: number;
}
export const part: Reader<Part> = object({
  name: text,
  timeNs: finite,
  share: finite,
});

/** A whole and its parts; where `is_partition`, the parts are all of it. */
export interface Split {
  readonly section: Section;
  /** Of the section `device`. */
  readonly device: string;
  readonly title: string;
  readonly help: string;
  readonly wholeNs: number;
  readonly parts: readonly Part[];
  readonly isPartition: boolean;
}
export const split: Reader<Split> = object({
  section: section,
  device: text,
  title: text,
  help: text,
  wholeNs: finite,
  parts: list(part),
  isPartition: flag,
});

/** One step; of several ranks the mean. */
export interface StepBar {
  readonly number: number;
  readonly durationNs: number;
  readonly busyNs: number;
  readonly idleNs: number;
  /** Times in the order of `Overview.phase_names`; what they leave of the duration is in no phase. */
  readonly phases: readonly number[];
}
export const stepBar: Reader<StepBar> = object({
  number: finite,
  durationNs: finite,
  busyNs: finite,
  idleNs: finite,
  phases: list(finite),
});

/** A line with what it costs. */
export interface HotLine {
  /** As recorded; "" for what ran on no line. */
  readonly file: string;
  readonly line: number;
  readonly place: string;
  readonly function: string;
  readonly source: string;
  /** Self time and the device's idle time that it is blamed for. */
  readonly costNs: number;
  /** Of what all lines cost, and what ran on none. */
  readonly share: number;
  readonly selfNs: number;
  readonly backwardNs: number;
  readonly idleNs: number;
  /** What holds it back, in a word; "" where that is not known. */
  readonly verdict: string;
}
export const hotLine: Reader<HotLine> = object({
  file: text,
  line: finite,
  place: text,
  function: text,
  source: text,
  costNs: finite,
  share: finite,
  selfNs: finite,
  backwardNs: finite,
  idleNs: finite,
  verdict: text,
});

/** A kernel or an operator, and a time in it. */
export interface NamedTime {
  /** Its row's word on its own page. */
  readonly key: string;
  readonly label: string;
  readonly timeNs: number;
  readonly calls: number;
}
export const namedTime: Reader<NamedTime> = object({
  key: text,
  label: text,
  timeNs: finite,
  calls: finite,
});

/** The most expensive rows of one page. */
export interface WorkList {
  readonly page: "kernels" | "modules" | "operators";
  readonly title: string;
  /** By their own work, the largest first. */
  readonly rows: readonly NamedTime[];
  /** All work, which the rows are parts of. */
  readonly wholeNs: number;
}
export const workList: Reader<WorkList> = object({
  page: oneOf("kernels", "modules", "operators"),
  title: text,
  rows: list(namedTime),
  wholeNs: finite,
});

/** A line on which the CPU was while the device had nothing to do. */
export interface IdleLine {
  readonly file: string;
  readonly line: number;
  readonly place: string;
  readonly function: string;
  readonly idleNs: number;
  /** Of the idle time. */
  readonly share: number;
  /** What most of it is. */
  readonly cause: string;
}
export const idleLine: Reader<IdleLine> = object({
  file: text,
  line: finite,
  place: text,
  function: text,
  idleNs: finite,
  share: finite,
  cause: text,
});

/** The devices' idle time. */
export interface Idle {
  readonly wholeNs: number;
  /** They sum to it. */
  readonly causes: readonly Part[];
  /** The largest first. */
  readonly lines: readonly IdleLine[];
}
export const idle: Reader<Idle> = object({
  wholeNs: finite,
  causes: list(part),
  lines: list(idleLine),
});

/** One of the things that a framework does on its own account. */
export interface FrameworkTime {
  /** `loops`, `logging`, `checkpoints`, `callback EarlyStopping`. */
  readonly part: string;
  readonly timeNs: number;
  /** Of the wall time. */
  readonly share: number;
  /** The line that calls the framework's loop. */
  readonly file: string;
  readonly line: number;
  readonly place: string;
}
export const frameworkTime: Reader<FrameworkTime> = object({
  part: text,
  timeNs: finite,
  share: finite,
  file: text,
  line: finite,
  place: text,
});

/** How the training thread spent its time, and what the framework has of it. */
export interface Training {
  /** `fit`, `validate`, `test`, `predict`; "" outside of a framework that has stages. */
  readonly stage: string;
  /** Other stages of the run. */
  readonly alsoRecorded: readonly string[];
  /** They sum to the wall time. */
  readonly phases: readonly Part[];
  /** Of each phase how often it began. */
  readonly calls: readonly number[];
  /** `Lightning`; "" for none. */
  readonly framework: string;
  /** The longest first. */
  readonly parts: readonly FrameworkTime[];
}
export const training: Reader<Training> = object({
  stage: text,
  alsoRecorded: list(text),
  phases: list(part),
  calls: list(finite),
  framework: text,
  parts: list(frameworkTime),
});

/** One piece of advice. */
export interface ShownFinding {
  readonly code: string;
  readonly title: string;
  readonly severity: Severity;
  /** As recorded; "" where no line is known. */
  readonly file: string;
  readonly line: number;
  /** `net.py:42`; "" where no line is known. */
  readonly place: string;
  readonly function: string;
  readonly message: string;
  readonly remedy: string;
  /** The most wall time that can be saved, over all steps. */
  readonly savingNs: number;
  /** Of the wall time. */
  readonly savingShare: number;
  readonly evidence: readonly Figure[];
}
export const shownFinding: Reader<ShownFinding> = object({
  code: text,
  title: text,
  severity: severity,
  file: text,
  line: finite,
  place: text,
  function: text,
  message: text,
  remedy: text,
  savingNs: finite,
  savingShare: finite,
  evidence: list(figure),
});

/** What a stranger should see first. */
export interface Overview {
  /** What the run spends its time on, in words. */
  readonly sentence: string;
  readonly figures: readonly Figure[];
  readonly splits: readonly Split[];
  readonly phaseNames: readonly string[];
  readonly steps: readonly StepBar[];
  readonly lines: readonly HotLine[];
  /** Where no line is known, or one has more than half of the cost. */
  readonly work: readonly WorkList[];
  /** None where no device works, or no line is known. */
  readonly idle: Idle | null;
  readonly training: Training;
  readonly findings: readonly ShownFinding[];
  readonly moreFindings: number;
  /** What it means that there are none. */
  readonly withoutFindings: string;
}
export const overview: Reader<Overview> = object({
  sentence: text,
  figures: list(figure),
  splits: list(split),
  phaseNames: list(text),
  steps: list(stepBar),
  lines: list(hotLine),
  work: list(workList),
  idle: nullable(idle),
  training: training,
  findings: list(shownFinding),
  moreFindings: finite,
  withoutFindings: text,
});

/** A column of a table. */
export interface Column {
  /** The same in every version: what addresses and exports call it. */
  readonly key: string;
  readonly title: string;
  readonly kind: CellKind;
  readonly help: string;
  /** 0 for what is always shown; where there is little room, those with the largest leave first. */
  readonly rank: number;
}
export const column: Reader<Column> = object({
  key: text,
  title: text,
  kind: cellKind,
  help: text,
  rank: finite,
});

/** A file with the sums over its lines. */
export interface LineFile {
  /** As recorded. */
  readonly file: string;
  /** From the project's root, with `/`. */
  readonly name: string;
  readonly group: FileGroup;
  /** Measured ones. */
  readonly lines: number;
  /** By `Lines.columns`; null for what does not add up. */
  readonly values: readonly (number | null)[];
}
export const lineFile: Reader<LineFile> = object({
  file: text,
  name: text,
  group: fileGroup,
  lines: finite,
  values: list(nullable(finite)),
});

/** What is no line's: a framework's own work, and the work of no user line. */
export interface Rest {
  readonly name: string;
  readonly about: string;
  readonly values: readonly number[];
}
export const rest: Reader<Rest> = object({
  name: text,
  about: text,
  values: list(finite),
});

/** The files, the dearest first, and what is no line's: with the files of libraries left aside they are all. */
export interface Lines {
  readonly columns: readonly Column[];
  /** Of all lines and the rest; null for what does not add up. */
  readonly wholes: readonly (number | null)[];
  /** The largest value of a line, to which heat is relative. */
  readonly largest: readonly number[];
  readonly files: readonly LineFile[];
  readonly rest: readonly Rest[];
  /** Of the user; those of libraries are apart. */
  readonly lines: number;
  /** Files beyond the limit. */
  readonly leftOut: number;
}
export const lines: Reader<Lines> = object({
  columns: list(column),
  wholes: list(nullable(finite)),
  largest: list(finite),
  files: list(lineFile),
  rest: list(rest),
  lines: finite,
  leftOut: finite,
});

/** Rows of cells. */
export interface Table {
  readonly id: string;
  readonly title: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly (string | number | null)[])[];
  /** Paths as recorded, which `places` counts through. */
  readonly files: readonly string[];
  /** Of each row the file's number and the line; `[-1, 0]` for no line. */
  readonly places: readonly (readonly number[])[];
  /** Of each row the row that it is below, -1 for none, each after its parent; empty where the rows are no tree. */
  readonly parents: readonly number[];
  /** Of each row the word by which addresses and questions name it; empty where none is asked for by itself. */
  readonly keys: readonly string[];
  /** Rows beyond the limit. */
  readonly leftOut: number;
}
export const table: Reader<Table> = object({
  id: text,
  title: text,
  columns: list(column),
  rows: list(list(nullable(either(text, finite)))),
  files: list(text),
  places: list(list(finite)),
  parents: list(finite),
  keys: list(text),
  leftOut: finite,
});

/** All lines. */
export interface LineList {
  /** The user's, and what is no line's: they sum to the whole. */
  readonly lines: Table;
  /** Recorded lines of libraries: their time is the user's lines'. */
  readonly library: Table;
}
export const lineList: Reader<LineList> = object({
  lines: table,
  library: table,
});

/** A line of a file with its numbers; of one that runs in several functions (a comprehension's) all together. */
export interface MeasuredLine {
  readonly line: number;
  /** The dearest first. */
  readonly functions: readonly string[];
  readonly verdict: string;
  /** What its numbers are of, where that is not simply the line. */
  readonly notes: readonly string[];
  readonly isLibrary: boolean;
  /** By `columns`; of totals, which overlap, the largest. */
  readonly values: readonly number[];
}
export const measuredLine: Reader<MeasuredLine> = object({
  line: finite,
  functions: list(text),
  verdict: text,
  notes: list(text),
  isLibrary: flag,
  values: list(finite),
});

/** A file's text as it ran, and its measured lines. */
export interface FileText {
  readonly file: string;
  readonly name: string;
  readonly columns: readonly Column[];
  /** The largest value of a line of the whole profile. */
  readonly largest: readonly number[];
  /** Empty where what ran is not known for certain. */
  readonly text: readonly string[];
  /** Why there is no text. */
  readonly missing: string;
  /** By number. */
  readonly rows: readonly MeasuredLine[];
}
export const fileText: Reader<FileText> = object({
  file: text,
  name: text,
  columns: list(column),
  largest: list(finite),
  text: list(text),
  missing: text,
  rows: list(measuredLine),
});

/** A part of a line's cost. */
export interface LineCause {
  readonly name: string;
  readonly help: string;
  readonly timeNs: number;
  readonly share: number;
}
export const lineCause: Reader<LineCause> = object({
  name: text,
  help: text,
  timeNs: finite,
  share: finite,
});

/** A line that shares kernels with this one. */
export interface FusedLine {
  readonly file: string;
  readonly line: number;
  readonly place: string;
  readonly sharedNs: number;
}
export const fusedLine: Reader<FusedLine> = object({
  file: text,
  line: finite,
  place: text,
  sharedNs: finite,
});

/** A line of a call path. */
export interface Caller {
  readonly file: string;
  readonly line: number;
  readonly place: string;
  readonly function: string;
}
export const caller: Reader<Caller> = object({
  file: text,
  line: finite,
  place: text,
  function: text,
});

/** A way to a line, the outermost line first; without frames the line was called by no other. */
export interface CallPath {
  readonly frames: readonly Caller[];
  /** Device time of the line itself. */
  readonly selfNs: number;
  /** The same with that of the lines that it calls. */
  readonly totalNs: number;
  /** CPU time of the line and of those that it calls. */
  readonly cpuNs: number;
}
export const callPath: Reader<CallPath> = object({
  frames: list(caller),
  selfNs: finite,
  totalNs: finite,
  cpuNs: finite,
});

/** A node of the tree below a line; parents come before what is below them, the first is the line itself. */
export interface BelowNode {
  /** -1 for the line. */
  readonly parent: number;
  readonly kind: NodeKind;
  readonly name: string;
  readonly file: string;
  readonly line: number;
  /** `functional.py:12`; "" where none is known. */
  readonly place: string;
  readonly selfNs: number;
  readonly totalNs: number;
  /** Part of `total_ns`. */
  readonly backwardNs: number;
  readonly calls: number;
  /** How many modules that are alike it stands for. */
  readonly layers: number;
}
export const belowNode: Reader<BelowNode> = object({
  parent: finite,
  kind: nodeKind,
  name: text,
  file: text,
  line: finite,
  place: text,
  selfNs: finite,
  totalNs: finite,
  backwardNs: finite,
  calls: finite,
  layers: finite,
});

/** One line. */
export interface LineDetails {
  readonly file: string;
  readonly line: number;
  readonly place: string;
  readonly function: string;
  /** In which it runs, the dearest first. */
  readonly functions: readonly string[];
  readonly source: string;
  readonly notes: readonly string[];
  readonly isLibrary: boolean;
  readonly figures: readonly Figure[];
  /** Of what the run costs. */
  readonly costShare: number;
  readonly verdict: string;
  /** What the verdict rests on, or why there is none. */
  readonly why: string;
  /** They sum to the cost. */
  readonly causes: readonly LineCause[];
  readonly costNs: number;
  readonly fusedWith: readonly FusedLine[];
  /** Bytes that were live at the peak, by what held them. */
  readonly held: readonly Figure[];
  readonly findings: readonly ShownFinding[];
  readonly callers: readonly CallPath[];
  readonly callersLeftOut: number;
  readonly below: readonly BelowNode[];
  /** Smaller nodes; their time is in no node that is shown but in the totals above. */
  readonly belowLeftOut: number;
  /** Why call paths and what is below are not known. */
  readonly note: string;
}
export const lineDetails: Reader<LineDetails> = object({
  file: text,
  line: finite,
  place: text,
  function: text,
  functions: list(text),
  source: text,
  notes: list(text),
  isLibrary: flag,
  figures: list(figure),
  costShare: finite,
  verdict: text,
  why: text,
  causes: list(lineCause),
  costNs: finite,
  fusedWith: list(fusedLine),
  held: list(figure),
  findings: list(shownFinding),
  callers: list(callPath),
  callersLeftOut: finite,
  below: list(belowNode),
  belowLeftOut: finite,
  note: text,
});

/** What boxes show. */
export interface FlameFrame {
  readonly kind: NodeKind;
  readonly name: string;
  /** As recorded; "" where none is known. */
  readonly file: string;
  readonly line: number;
  readonly place: string;
}
export const flameFrame: Reader<FlameFrame> = object({
  kind: nodeKind,
  name: text,
  file: text,
  line: finite,
  place: text,
});

/** The nodes in columns; a parent stands before its children. */
export interface Flame {
  /** Of which there is any time. */
  readonly metrics: readonly FlameMetric[];
  readonly isDevice: boolean;
  readonly frames: readonly FlameFrame[];
  /** Of each node its frame. */
  readonly shown: readonly number[];
  /** Of each node; -1 for a root. */
  readonly parents: readonly number[];
  /** Nanoseconds of each node that lie in none of its children, over all steps. */
  readonly own: readonly number[];
  /** The same of the baseline, for as many steps and ranks; empty without one. */
  readonly before: readonly number[];
  readonly wholeNs: number;
  readonly beforeNs: number;
  /** The baseline's time on call paths that this run does not have. */
  readonly goneNs: number;
  /** What the baseline is called. */
  readonly baseline: string;
  /** Smaller nodes, whose time their parents have. */
  readonly leftOut: number;
  /** Time of those that had no parent; with `own` it sums to `whole_ns`. */
  readonly leftOutNs: number;
  readonly note: string;
}
export const flame: Reader<Flame> = object({
  metrics: list(flameMetric),
  isDevice: flag,
  frames: list(flameFrame),
  shown: list(finite),
  parents: list(finite),
  own: list(finite),
  before: list(finite),
  wholeNs: finite,
  beforeNs: finite,
  goneNs: finite,
  baseline: text,
  leftOut: finite,
  leftOutNs: finite,
  note: text,
});

/** What was allocated after each of some events. Times are nanoseconds from `DeviceCurve.begin`. */
export interface MemoryCurve {
  readonly atNs: readonly number[];
  readonly allocatedBytes: readonly number[];
  /** Empty where the trace does not say; -1 where it does not say for an event. */
  readonly reservedBytes: readonly number[];
}
export const memoryCurve: Reader<MemoryCurve> = object({
  atNs: list(finite),
  allocatedBytes: list(finite),
  reservedBytes: list(finite),
});

/** How much of what was live was of one kind. */
export interface HeldPart {
  /** In words, in the order in which kinds are shown everywhere; all kinds are there. */
  readonly kind: string;
  readonly sizeBytes: number;
}
export const heldPart: Reader<HeldPart> = object({
  kind: text,
  sizeBytes: finite,
});

/** A step on the axis of time. */
export interface StepMark {
  readonly number: number;
  readonly beginNs: number;
  readonly endNs: number;
}
export const stepMark: Reader<StepMark> = object({
  number: finite,
  beginNs: finite,
  endNs: finite,
});

/** The memory of one device; of several ranks that call theirs by the same name, that with the largest peak. */
export interface DeviceCurve {
  readonly device: string;
  /** Of several the one that this is of. */
  readonly rank: number | null;
  /** The 0 of all times here, on the trace's clock: nanoseconds in digits, more than JavaScript's numbers hold. */
  readonly begin: string;
  readonly endNs: number;
  readonly curve: MemoryCurve;
  /** 0 where the trace does not say. */
  readonly capacityBytes: number;
  readonly peakAtNs: number;
  readonly peakBytes: number;
  /** At the peak; they sum to `peak_bytes`. */
  readonly held: readonly HeldPart[];
  /** The same by line; None where `MemoryPage.at_peak` is that, or where no profile has this device alone. */
  readonly atPeak: Table | null;
  readonly steps: readonly StepMark[];
}
export const deviceCurve: Reader<DeviceCurve> = object({
  device: text,
  rank: nullable(finite),
  begin: text,
  endNs: finite,
  curve: memoryCurve,
  capacityBytes: finite,
  peakAtNs: finite,
  peakBytes: finite,
  held: list(heldPart),
  atPeak: nullable(table),
  steps: list(stepMark),
});

/** An allocation that failed, and what was live then. */
export interface FailedAllocation {
  readonly message: string;
  readonly device: string;
  readonly sizeBytes: number;
  readonly held: readonly HeldPart[];
  readonly lines: Table;
}
export const failedAllocation: Reader<FailedAllocation> = object({
  message: text,
  device: text,
  sizeBytes: finite,
  held: list(heldPart),
  lines: table,
});

/** The memory of a run. */
export interface MemoryPage {
  readonly figures: readonly Figure[];
  /** The largest peak first; empty where nothing recorded memory. */
  readonly devices: readonly DeviceCurve[];
  /** Whether the recorder told what held memory; else all of it is unknown. */
  readonly isTold: boolean;
  /** What was live at the peaks by line, the devices and ranks added up. */
  readonly atPeak: Table;
  /** What each line allocated and released. */
  readonly lines: Table;
  readonly failure: FailedAllocation | null;
}
export const memoryPage: Reader<MemoryPage> = object({
  figures: list(figure),
  devices: list(deviceCurve),
  isTold: flag,
  atPeak: table,
  lines: table,
  failure: nullable(failedAllocation),
});

/** What was live on a device after the last event until a moment. */
export interface Moment {
  /** When that event was, on the trace's clock: nanoseconds in digits. */
  readonly at: string;
  /** As the curve has it. */
  readonly allocatedBytes: number;
  /** -1 where the trace does not say. */
  readonly reservedBytes: number;
  /** What the kinds sum to, and the rows of each table: `allocated_bytes`, or more where more blocks are known. */
  readonly sizeBytes: number;
  readonly held: readonly HeldPart[];
  readonly lines: Table;
  readonly modules: Table;
}
export const moment: Reader<Moment> = object({
  at: text,
  allocatedBytes: finite,
  reservedBytes: finite,
  sizeBytes: finite,
  held: list(heldPart),
  lines: table,
  modules: table,
});

/** A figure that a cause rests on, in words. */
export interface LateFigure {
  readonly label: string;
  readonly value: string;
  /** The median of the others. */
  readonly typical: string;
}
export const lateFigure: Reader<LateFigure> = object({
  label: text,
  value: text,
  typical: text,
});

/** A rank that the others wait for; times a step. */
export interface LateRank {
  readonly rank: number;
  readonly message: string;
  /** By how much it is later than the median of the others. */
  readonly excessNs: number;
  /** In words; "" where none has most of it. */
  readonly cause: string;
  readonly figures: readonly LateFigure[];
  readonly part: string;
  readonly partNs: number;
  /** Of the line that made it late; "" where none has a good part of it. */
  readonly file: string;
  readonly line: number;
  readonly place: string;
  readonly function: string;
  readonly source: string;
  readonly lineNs: number;
}
export const lateRank: Reader<LateRank> = object({
  rank: finite,
  message: text,
  excessNs: finite,
  cause: text,
  figures: list(lateFigure),
  part: text,
  partNs: finite,
  file: text,
  line: finite,
  place: text,
  function: text,
  source: text,
  lineNs: finite,
});

/** A trace that could not be used. */
export interface RankFailure {
  readonly path: string;
  readonly rank: number | null;
  readonly message: string;
}
export const rankFailure: Reader<RankFailure> = object({
  path: text,
  rank: nullable(finite),
  message: text,
});

/** Point-to-point messages: a row for each sender, a column for each receiver. */
export interface PairMatrix {
  readonly ranks: readonly number[];
  readonly bytes: readonly (readonly number[])[];
  readonly timesNs: readonly (readonly number[])[];
}
export const pairMatrix: Reader<PairMatrix> = object({
  ranks: list(finite),
  bytes: list(list(finite)),
  timesNs: list(list(finite)),
});

/** Ranks side by side. What is by rank stands in the order of `ranks`. */
export interface Distributed {
  readonly sentence: string;
  readonly figures: readonly Figure[];
  readonly ranks: readonly number[];
  /** Whether times are of a step; else of all that was recorded, since no rank has steps. */
  readonly hasSteps: boolean;
  readonly hosts: readonly string[];
  /** Of each rank the number of its host in `hosts`. */
  readonly hostOf: readonly number[];
  /** A step without the part in which only communication runs. */
  readonly ownNs: readonly number[];
  readonly medianOwnNs: number;
  /** Percent above the median from which on a cell is darker, the least first. */
  readonly levels: readonly number[];
  readonly partNames: readonly string[];
  /** The step of each rank by `part_names`, each instant once. */
  readonly parts: readonly (readonly number[])[];
  readonly table: Table;
  /** The ranks with the longest own time, the longest first; empty for a single rank. */
  readonly slowest: readonly number[];
  /** The worst first. */
  readonly stragglers: readonly LateRank[];
  readonly stragglersLeftOut: number;
  readonly worldSize: number;
  /** Ranks of the run of which there is no trace: `3, 8-15`. */
  readonly missing: string;
  readonly failures: readonly RankFailure[];
  readonly failuresLeftOut: number;
  /** Whether calls of collectives could be matched over the ranks. */
  readonly knowsWaits: boolean;
  readonly groups: Table;
  readonly collectives: Table;
  /** Of Ascend clusters: communication by process group, as the profiler's own tables have it. */
  readonly domains: Table;
  /** The same of transfers from rank to rank. */
  readonly links: Table;
  readonly matrix: PairMatrix | null;
  readonly pairs: Table;
  readonly clocks: Table;
  readonly varying: Table;
  /** Lines by how much their own time differs between ranks. */
  readonly lines: Table;
}
export const distributed: Reader<Distributed> = object({
  sentence: text,
  figures: list(figure),
  ranks: list(finite),
  hasSteps: flag,
  hosts: list(text),
  hostOf: list(finite),
  ownNs: list(finite),
  medianOwnNs: finite,
  levels: list(finite),
  partNames: list(text),
  parts: list(list(finite)),
  table: table,
  slowest: list(finite),
  stragglers: list(lateRank),
  stragglersLeftOut: finite,
  worldSize: finite,
  missing: text,
  failures: list(rankFailure),
  failuresLeftOut: finite,
  knowsWaits: flag,
  groups: table,
  collectives: table,
  domains: table,
  links: table,
  matrix: nullable(pairMatrix),
  pairs: table,
  clocks: table,
  varying: table,
  lines: table,
});

/** A number of the rank, and the median of the others. */
export interface BesideNumber {
  readonly label: string;
  readonly kind: CellKind;
  readonly value: number | null;
  readonly typical: number | null;
}
export const besideNumber: Reader<BesideNumber> = object({
  label: text,
  kind: cellKind,
  value: nullable(finite),
  typical: nullable(finite),
});

/** A rank in detail; times a step, each beside the median of the others. */
export interface RankPage {
  readonly rank: number;
  /** Whether times are of a step; else of all that was recorded. */
  readonly hasSteps: boolean;
  readonly host: string;
  readonly device: string;
  readonly trace: string;
  readonly sentence: string;
  readonly late: LateRank | null;
  readonly numbers: readonly BesideNumber[];
  /** The parts of its step. */
  readonly parts: readonly BesideNumber[];
  readonly lines: Table;
  readonly collectives: Table;
  /** Collectives that it comes last to more often than any other rank. */
  readonly comesLast: Table;
  readonly pairs: Table;
  readonly work: Table;
  /** Of its clock; None where that is not known. */
  readonly offsetNs: number | null;
  readonly residualNs: number | null;
}
export const rankPage: Reader<RankPage> = object({
  rank: finite,
  hasSteps: flag,
  host: text,
  device: text,
  trace: text,
  sentence: text,
  late: nullable(lateRank),
  numbers: list(besideNumber),
  parts: list(besideNumber),
  lines: table,
  collectives: table,
  comesLast: table,
  pairs: table,
  work: table,
  offsetNs: nullable(finite),
  residualNs: nullable(finite),
});

/** All advice, the largest saving first. */
export interface Findings {
  readonly findings: readonly ShownFinding[];
  /** What it means that there are none. */
  readonly without: string;
  readonly wallNs: number;
  readonly steps: number;
}
export const findings: Reader<Findings> = object({
  findings: list(shownFinding),
  without: text,
  wallNs: finite,
  steps: finite,
});

/** A side of a comparison. */
export interface ComparedRun {
  readonly run: string;
  readonly title: string;
  readonly recordedAt: string;
  readonly steps: number;
}
export const comparedRun: Reader<ComparedRun> = object({
  run: text,
  title: text,
  recordedAt: text,
  steps: finite,
});

/** A time a step in both runs, in nanoseconds (without steps: in all). */
export interface TimeChange {
  readonly beforeNs: number;
  readonly afterNs: number;
  readonly changeNs: number;
  /** Where the true difference lies, from here to `high_ns`; None where nothing tells of the spread. */
  readonly lowNs: number | null;
  readonly highNs: number | null;
  readonly verdict: RowVerdict;
}
export const timeChange: Reader<TimeChange> = object({
  beforeNs: finite,
  afterNs: finite,
  changeNs: finite,
  lowNs: nullable(finite),
  highNs: nullable(finite),
  verdict: rowVerdict,
});

/** A run beside another one. */
export interface Compared {
  /** None where there is no other run; then there are no rows. */
  readonly before: ComparedRun | null;
  readonly after: ComparedRun;
  readonly by: ComparedTable;
  readonly number: ComparedNumber;
  /** Whether anything is known of noise. */
  readonly hasIntervals: boolean;
  readonly step: TimeChange | null;
  readonly stepWords: string;
  readonly noiseWords: string;
  /** Those beyond noise first, each part by the size of its change; rows without a change are left out. */
  readonly rows: Table;
  /** So many of them, the first. */
  readonly beyondNoise: number;
}
export const compared: Reader<Compared> = object({
  before: nullable(comparedRun),
  after: comparedRun,
  by: comparedTable,
  number: comparedNumber,
  hasIntervals: flag,
  step: nullable(timeChange),
  stepWords: text,
  noiseWords: text,
  rows: table,
  beyondNoise: finite,
});

/** The page that explains a piece of advice. */
export interface FindingPage {
  readonly code: string;
  /** In Markdown; "" where there is no such page. */
  readonly text: string;
}
export const findingPage: Reader<FindingPage> = object({
  code: text,
  text: text,
});

/** A row for each operator, each of its shapes or stacks, or each kind. */
export interface Operators {
  readonly by: Grouping;
  readonly table: Table;
}
export const operators: Reader<Operators> = object({
  by: grouping,
  table: table,
});

/** A part of a time, by what holds it back. */
export interface Cause {
  readonly name: string;
  readonly timeNs: number;
}
export const cause: Reader<Cause> = object({
  name: text,
  timeNs: finite,
});

/** A line of a stack. */
export interface Spot {
  readonly file: string;
  readonly line: number;
  readonly place: string;
  readonly function: string;
}
export const spot: Reader<Spot> = object({
  file: text,
  line: finite,
  place: text,
  function: text,
});

/** A line, and a time that it owns. */
export interface OwnerLine {
  readonly file: string;
  readonly line: number;
  readonly place: string;
  readonly function: string;
  readonly timeNs: number;
}
export const ownerLine: Reader<OwnerLine> = object({
  file: text,
  line: finite,
  place: text,
  function: text,
  timeNs: finite,
});

/** What is known of an operator beside the numbers of its row. */
export interface OperatorDetails {
  /** As the trace has it. */
  readonly name: string;
  /** All operators of a kind; the rest is then empty but for them. */
  readonly isKind: boolean;
  /** What holds its work back, in words; or why that is not known. */
  readonly why: string;
  /** They sum to its own time, or where its FLOPs are of operators that it calls, to the time of these. */
  readonly causes: readonly Cause[];
  readonly shapes: string;
  readonly outShapes: string;
  /** The innermost line first. */
  readonly stack: readonly Spot[];
  /** Of an operator by name; so are the lines. */
  readonly kernels: readonly NamedTime[];
  readonly lines: readonly OwnerLine[];
  /** Of a kind. */
  readonly operators: readonly NamedTime[];
}
export const operatorDetails: Reader<OperatorDetails> = object({
  name: text,
  isKind: flag,
  why: text,
  causes: list(cause),
  shapes: text,
  outShapes: text,
  stack: list(spot),
  kernels: list(namedTime),
  lines: list(ownerLine),
  operators: list(namedTime),
});

/** An operator's rows by shapes, or by stacks. */
export interface OperatorVariants {
  readonly table: Table;
}
export const operatorVariants: Reader<OperatorVariants> = object({
  table: table,
});

/** A row for each kernel, copy, fill and collective. */
export interface Kernels {
  readonly table: Table;
}
export const kernels: Reader<Kernels> = object({
  table: table,
});

/** What is known of a kernel beside the numbers of its row. */
export interface KernelDetails {
  /** As the trace has it. */
  readonly name: string;
  readonly kind: KernelKind;
  /** The operator that launches most of it; its time and calls are the operator's own. */
  readonly operator: NamedTime | null;
  readonly lines: readonly OwnerLine[];
}
export const kernelDetails: Reader<KernelDetails> = object({
  name: text,
  kind: kernelKind,
  operator: nullable(namedTime),
  lines: list(ownerLine),
});

/** The tree of modules. */
export interface Modules {
  readonly table: Table;
  /** Whether some are alike. */
  readonly canFold: boolean;
  /** Of each row the whole path, `*` for numbers; "" where the trace has no paths. */
  readonly paths: readonly string[];
}
export const modules: Reader<Modules> = object({
  table: table,
  canFold: flag,
  paths: list(text),
});

/** One of the longest steps. */
export interface SlowStep {
  readonly number: number;
  readonly durationNs: number;
  /** Over the median of the steps. */
  readonly overNs: number;
  /** The line on which its training thread was longer than in other steps, by the most; "" for none. */
  readonly file: string;
  readonly line: number;
  readonly place: string;
  readonly function: string;
  /** Its time on that line over the median of the steps. */
  readonly excessNs: number;
}
export const slowStep: Reader<SlowStep> = object({
  number: finite,
  durationNs: finite,
  overNs: finite,
  file: text,
  line: finite,
  place: text,
  function: text,
  excessNs: finite,
});

/** One series of a counter. */
export interface CounterLine {
  readonly label: string;
  /** The mean in each block of steps. */
  readonly values: readonly (number | null)[];
}
export const counterLine: Reader<CounterLine> = object({
  label: text,
  values: list(nullable(finite)),
});

/** A counter over the steps. */
export interface CounterChart {
  readonly title: string;
  readonly help: string;
  readonly unit: Unit;
  /** The first step of each block. */
  readonly steps: readonly number[];
  /** The step behind the last block. */
  readonly end: number;
  readonly lines: readonly CounterLine[];
  /** Series that are not drawn. */
  readonly leftOut: number;
}
export const counterChart: Reader<CounterChart> = object({
  title: text,
  help: text,
  unit: unit,
  steps: list(finite),
  end: finite,
  lines: list(counterLine),
  leftOut: finite,
});

/** Durations are means of the ranks. */
export interface Steps {
  readonly figures: readonly Figure[];
  readonly phaseNames: readonly string[];
  readonly bars: readonly StepBar[];
  /** Longer than the median, the longest first. */
  readonly slow: readonly SlowStep[];
  readonly table: Table;
  readonly threads: Table;
  readonly streams: Table;
  /** What the machine did meanwhile, by step; empty for several ranks. */
  readonly counterCharts: readonly CounterChart[];
  readonly counters: Table;
}
export const steps: Reader<Steps> = object({
  figures: list(figure),
  phaseNames: list(text),
  bars: list(stepBar),
  slow: list(slowStep),
  table: table,
  threads: table,
  streams: table,
  counterCharts: list(counterChart),
  counters: table,
});

/** Slices that stand in rows: a CPU thread, a stream of a device, the steps and phases. */
export interface Track {
  readonly id: number;
  readonly kind: TrackKind;
  readonly title: string;
  /** How deep its slices nest. */
  readonly rows: number;
  /** In all. */
  readonly slices: number;
  /** Of a stream; -1 for others. */
  readonly device: number;
  /** Whether it is the thread that trains. */
  readonly isTraining: boolean;
}
export const track: Reader<Track> = object({
  id: finite,
  kind: trackKind,
  title: text,
  rows: finite,
  slices: finite,
  device: finite,
  isTraining: flag,
});

/** A number over time. */
export interface Counter {
  readonly id: number;
  readonly title: string;
  readonly unit: Unit;
  readonly largest: number;
  readonly device: number;
}
export const counter: Reader<Counter> = object({
  id: finite,
  title: text,
  unit: unit,
  largest: finite,
  device: finite,
});

/** A line of code. */
export interface Place {
  /** As recorded. */
  readonly file: string;
  readonly line: number;
  readonly function: string;
  /** In words: `net.py:42 Net.forward`. */
  readonly title: string;
}
export const place: Reader<Place> = object({
  file: text,
  line: finite,
  function: text,
  title: text,
});

/** What there is to see of a trace. */
export interface Timeline {
  /** The begin is 0. */
  readonly endNs: number;
  /** Where the steps begin or, without steps, what else is recorded than spans of the profiler's own. */
  readonly workBeginNs: number;
  /** Where the last step and all device work have ended. */
  readonly workEndNs: number;
  /** Nanoseconds since the epoch, in digits: more than JavaScript's numbers hold. */
  readonly beginEpochNs: string;
  /** In order: the steps, the training thread, the streams, other threads. */
  readonly tracks: readonly Track[];
  readonly counters: readonly Counter[];
  /** What `TrackWindow.kind` counts through. */
  readonly kinds: readonly SliceKind[];
  /** The lines that slices belong to: what `TrackWindow.place` counts through. */
  readonly places: readonly Place[];
  readonly slices: number;
}
export const timeline: Reader<Timeline> = object({
  endNs: finite,
  workBeginNs: finite,
  workEndNs: finite,
  beginEpochNs: text,
  tracks: list(track),
  counters: list(counter),
  kinds: list(sliceKind),
  places: list(place),
  slices: finite,
});

/**
 * The slices of one track in a window, in order of row and start.
 *
 * What is too small to be seen is joined with its neighbours in its row into one slice, which says how many it stands
 * for; nothing is left out. Lists of one length.
 */
export interface TrackWindow {
  readonly id: number;
  readonly start: readonly number[];
  readonly end: readonly number[];
  readonly row: readonly number[];
  /** Index into `Window.names`; of joined slices the name with the most time among them. */
  readonly name: readonly number[];
  /** Index into `Timeline.kinds`. */
  readonly kind: readonly number[];
  /** Index into `Timeline.places`; -1 for none. */
  readonly place: readonly number[];
  /** The slice's number in the timeline, for further questions; -1 for joined ones. */
  readonly slice: readonly number[];
  /** How many slices it stands for; 1 for itself. */
  readonly count: readonly number[];
  /** Nanoseconds within it that its slices cover: its length, or less where there are gaps between joined ones. */
  readonly busy: readonly number[];
}
export const trackWindow: Reader<TrackWindow> = object({
  id: finite,
  start: list(finite),
  end: list(finite),
  row: list(finite),
  name: list(finite),
  kind: list(finite),
  place: list(finite),
  slice: list(finite),
  count: list(finite),
  busy: list(finite),
});

/** A counter in a window: the value from each time on, the largest where several fall into one pixel. */
export interface CounterWindow {
  readonly id: number;
  readonly at: readonly number[];
  readonly value: readonly number[];
}
export const counterWindow: Reader<CounterWindow> = object({
  id: finite,
  at: list(finite),
  value: list(finite),
});

/** What a stretch of time shows. */
export interface Window {
  readonly beginNs: number;
  readonly endNs: number;
  /** Slices shorter than this may have been joined. */
  readonly resolutionNs: number;
  readonly tracks: readonly TrackWindow[];
  readonly counters: readonly CounterWindow[];
  readonly names: readonly string[];
}
export const window: Reader<Window> = object({
  beginNs: finite,
  endNs: finite,
  resolutionNs: finite,
  tracks: list(trackWindow),
  counters: list(counterWindow),
  names: list(text),
});

/** What a slice caused or was caused by: an arrow from one to another. */
export interface Link {
  readonly kind: LinkKind;
  readonly fromSlice: number;
  readonly fromTrack: number;
  readonly fromRow: number;
  readonly fromNs: number;
  readonly toSlice: number;
  readonly toTrack: number;
  readonly toRow: number;
  readonly toNs: number;
  /** The other slice's name. */
  readonly title: string;
}
export const link: Reader<Link> = object({
  kind: linkKind,
  fromSlice: finite,
  fromTrack: finite,
  fromRow: finite,
  fromNs: finite,
  toSlice: finite,
  toTrack: finite,
  toRow: finite,
  toNs: finite,
  title: text,
});

/** All that is known of one slice. */
export interface SliceDetails {
  readonly slice: number;
  readonly track: number;
  readonly row: number;
  /** Whole, however long. */
  readonly name: string;
  readonly kind: SliceKind;
  readonly startNs: number;
  readonly endNs: number;
  /** Its time without the slices in it. */
  readonly selfNs: number;
  /** Of the line that owns it; -1 for none. */
  readonly place: number;
  /** Places of the lines around it, the innermost first. */
  readonly stack: readonly number[];
  /** The path of the innermost module around it, "" for none. */
  readonly module: string;
  /** Shapes, stream, grid, bytes, FLOPs, what waited: what is there of it. */
  readonly facts: readonly Fact[];
  readonly links: readonly Link[];
}
export const sliceDetails: Reader<SliceDetails> = object({
  slice: finite,
  track: finite,
  row: finite,
  name: text,
  kind: sliceKind,
  startNs: finite,
  endNs: finite,
  selfNs: finite,
  place: finite,
  stack: list(finite),
  module: text,
  facts: list(fact),
  links: list(link),
});

/** How much of a selection a track is busy. */
export interface Busy {
  readonly track: number;
  /** The union of its slices (of a thread: of operators and runtime calls) in the selection. */
  readonly busyNs: number;
}
export const busy: Reader<Busy> = object({
  track: finite,
  busyNs: finite,
});

/** A name with its time in a selection. */
export interface Sum {
  readonly name: string;
  readonly kind: SliceKind;
  /** Index into `Timeline.places`; -1 for none. */
  readonly place: number;
  /** Within the selection: what goes beyond it is cut off. */
  readonly timeNs: number;
  readonly count: number;
}
export const sum: Reader<Sum> = object({
  name: text,
  kind: sliceKind,
  place: finite,
  timeNs: finite,
  count: finite,
});

/** What a counter does in a selection. */
export interface Change {
  readonly counter: number;
  readonly first: number;
  readonly last: number;
  readonly least: number;
  readonly largest: number;
  /** By time. */
  readonly mean: number;
}
export const change: Reader<Change> = object({
  counter: finite,
  first: finite,
  last: finite,
  least: finite,
  largest: finite,
  mean: finite,
});

/** The sums of a stretch of time, over the tracks that were asked for. */
export interface Selection {
  readonly beginNs: number;
  readonly endNs: number;
  readonly busy: readonly Busy[];
  /** Of each device in the order of the devices: when none of its streams works. */
  readonly idleNs: readonly number[];
  readonly devices: readonly number[];
  /**
   * Device work by the line that owns it (without a device: operators' own CPU time), the largest first; all, so that
   * they sum to the work in the selection. No line has the place -1.
   */
  readonly lines: readonly Sum[];
  /** Device work by name, the largest 50, then one "(others)". */
  readonly kernels: readonly Sum[];
  /** Operators by their own CPU time, the largest 50, then one "(others)". */
  readonly operators: readonly Sum[];
  readonly counters: readonly Change[];
}
export const selection: Reader<Selection> = object({
  beginNs: finite,
  endNs: finite,
  busy: list(busy),
  idleNs: list(finite),
  devices: list(finite),
  lines: list(sum),
  kernels: list(sum),
  operators: list(sum),
  counters: list(change),
});

/** A slice that a search found. */
export interface Found {
  readonly slice: number;
  readonly track: number;
  readonly row: number;
  readonly startNs: number;
  readonly endNs: number;
  readonly name: string;
}
export const found: Reader<Found> = object({
  slice: finite,
  track: finite,
  row: finite,
  startNs: finite,
  endNs: finite,
  name: text,
});

/** What a search found. */
export interface Matches {
  readonly count: number;
  /** The sum of their durations, each counted even where one is in another. */
  readonly timeNs: number;
  /** In order of time, not more than were asked for, those from the asked time on first. */
  readonly found: readonly Found[];
}
export const matches: Reader<Matches> = object({
  count: finite,
  timeNs: finite,
  found: list(found),
});

/** How long the slices of one name are: a histogram with bins that grow by a constant ratio. */
export interface Durations {
  readonly name: string;
  readonly kind: SliceKind;
  readonly count: number;
  readonly leastNs: number;
  readonly medianNs: number;
  readonly p95Ns: number;
  readonly largestNs: number;
  readonly totalNs: number;
  readonly edgesNs: readonly number[];
  /** One fewer than edges. */
  readonly counts: readonly number[];
  /** The longest ten. */
  readonly longest: readonly Found[];
}
export const durations: Reader<Durations> = object({
  name: text,
  kind: sliceKind,
  count: finite,
  leastNs: finite,
  medianNs: finite,
  p95Ns: finite,
  largestNs: finite,
  totalNs: finite,
  edgesNs: list(finite),
  counts: list(finite),
  longest: list(found),
});

export const questions = {
  /** Which runs can be chosen. */
  runs: ask<Question, Runs>("runs", runs),
  /** Whether there are other runs than before. */
  news: ask<Question, News>("news", news),
  /** What is shown. */
  header: ask<Choice, Header>("header", header),
  /** How long a step is, what it is made of, which lines and findings matter. */
  overview: ask<Choice, Overview>("overview", overview),
  /** The files that lines stand in, with their sums. */
  lines: ask<Choice, Lines>("lines", lines),
  /** All lines as tables. */
  line_list: ask<Choice, LineList>("line_list", lineList),
  /**
   * One file.
   *
   * Raises:
   *     OptionError: the profile does not have it.
   */
  file: ask<FileQuestion, FileText>("file", fileText),
  /**
   * One line's details.
   *
   * Raises:
   *     OptionError: nothing was measured there.
   */
  line: ask<LineQuestion, LineDetails>("line", lineDetails),
  /**
   * The flame graph of what was chosen.
   *
   * Raises:
   *     OptionError: the baseline has device work and this run has none, or the other way round.
   */
  flame: ask<FlameQuestion, Flame>("flame", flame),
  /** The memory's curve, its peak, and what was live then. */
  memory: ask<Choice, MemoryPage>("memory", memoryPage),
  /** What was live at a moment, by line, by module and by what held it. */
  memory_at: ask<MomentQuestion, Moment>("memory_at", moment),
  /** The curve in a window. */
  memory_curve: ask<WindowQuestion, MemoryCurve>("memory_curve", memoryCurve),
  /** Ranks side by side, and which one is late. */
  distributed: ask<Choice, Distributed>("distributed", distributed),
  /** A rank in detail. */
  rank: ask<RankChoice, RankPage>("rank", rankPage),
  /** What could be changed. */
  findings: ask<Choice, Findings>("findings", findings),
  /** What became slower or faster since another run. */
  compare: ask<CompareQuestion, Compared>("compare", compared),
  /** The page that explains a piece of advice, as it stands in the package. */
  finding_page: ask<FindingPageAsked, FindingPage>("finding_page", findingPage),
  /** The operators, those first in which the device works longest. */
  operators: ask<OperatorsAsked, Operators>("operators", operators),
  /** One row of the operators in detail. */
  operator: ask<OperatorAsked, OperatorDetails>("operator", operatorDetails),
  /** The rows of one operator by shapes or stacks (`by`); `key` is that of its row by name. */
  operator_variants: ask<OperatorAsked, OperatorVariants>("operator_variants", operatorVariants),
  /** The kernels, those first that take longest. */
  kernels: ask<Choice, Kernels>("kernels", kernels),
  /** One kernel in detail. */
  kernel: ask<KernelAsked, KernelDetails>("kernel", kernelDetails),
  /** The modules, those first in which the device works longest. */
  modules: ask<ModulesAsked, Modules>("modules", modules),
  /** How long the steps are, and the threads and streams. */
  steps: ask<Choice, Steps>("steps", steps),
  /** What there is to see of the chosen rank's trace, else of the first's. */
  timeline: ask<Choice, Timeline>("timeline", timeline),
  /** What a stretch of time shows. */
  timeline_window: ask<ViewedStretch, Window>("timeline_window", window),
  /** All that is known of one slice. */
  timeline_slice: ask<OneSlice, SliceDetails>("timeline_slice", sliceDetails),
  /** The sums of a stretch of time. */
  timeline_selection: ask<Stretch, Selection>("timeline_selection", selection),
  /** The slices whose names hold a text. */
  timeline_search: ask<TextSearch, Matches>("timeline_search", matches),
  /** The slices that belong to a line of code. */
  timeline_line: ask<LineSearch, Matches>("timeline_line", matches),
  /** How long the slices of one name are. */
  timeline_durations: ask<DurationsOf, Durations>("timeline_durations", durations),
};
