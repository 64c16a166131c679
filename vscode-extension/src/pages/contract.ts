/**
 * What the dashboard's pages ask and are answered: types, and readers that check answers at run time.
 *
 * Made by contract.py from integrations/deepscope/dashboard; do not edit.
 */

import { finite, flag, list, nullable, object, oneOf, text, type Reader } from "../shape";

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

/** How a value is shown: times in nanoseconds, shares from 0 to 1, rates in operations or bytes a second. */
export const cellKind = oneOf("text", "place", "time", "bytes", "count", "share", "flops", "rate");
export type CellKind = ReturnType<typeof cellKind>;

export const section = oneOf("step", "span", "overlap", "idle", "device");
export type Section = ReturnType<typeof section>;

export const severity = oneOf("warning", "info", "hint");
export type Severity = ReturnType<typeof severity>;

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

/** A run that can be chosen. */
export interface Run {
  readonly id: string;
  readonly title: string;
  readonly folder: string;
  /** ISO 8601 in UTC. */
  readonly recordedAt: string;
  /** That its traces name; empty for a single process. */
  readonly ranks: readonly number[];
  /** The one first that is shown when none is chosen. */
  readonly stages: readonly string[];
  readonly traces: number;
  /** Of its traces. */
  readonly sizeBytes: number;
}
export const run: Reader<Run> = object({
  id: text,
  title: text,
  folder: text,
  recordedAt: text,
  ranks: list(finite),
  stages: list(text),
  traces: finite,
  sizeBytes: finite,
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

/** One step. */
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
  readonly findings: readonly ShownFinding[];
  readonly moreFindings: number;
}
export const overview: Reader<Overview> = object({
  sentence: text,
  figures: list(figure),
  splits: list(split),
  phaseNames: list(text),
  steps: list(stepBar),
  lines: list(hotLine),
  findings: list(shownFinding),
  moreFindings: finite,
});

/** All advice, the largest saving first. */
export interface Findings {
  readonly findings: readonly ShownFinding[];
  readonly wallNs: number;
  readonly steps: number;
}
export const findings: Reader<Findings> = object({
  findings: list(shownFinding),
  wallNs: finite,
  steps: finite,
});

export const questions = {
  /** Which runs can be chosen. */
  runs: ask<Question, Runs>("runs", runs),
  /** What is shown. */
  header: ask<Choice, Header>("header", header),
  /** How long a step is, what it is made of, which lines and findings matter. */
  overview: ask<Choice, Overview>("overview", overview),
  /** What could be changed. */
  findings: ask<Choice, Findings>("findings", findings),
};
