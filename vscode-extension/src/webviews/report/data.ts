/** What the page is made of, as `report/exports/html_data.py` writes it into the file; read with its shape checked. */

import { finite, flag, list, literal, natural, nullable, object, oneOf, text, type Reader } from "../../shape";

const fact = object({ label: text, value: text });
export type Fact = ReturnType<typeof fact>;

const kind = oneOf("text", "place", "time", "bytes", "count", "share");
export type CellKind = ReturnType<typeof kind>;

export type Cell = string | number | null;
const cell: Reader<Cell> = (value, at) => (typeof value === "string" ? value : nullable(finite)(value, at));

const figure = object({ label: text, value: finite, kind });
export type Figure = ReturnType<typeof figure>;

const tableData = object({
  id: text,
  title: text,
  columns: list(object({ title: text, kind })),
  rows: list(list(cell)),
  /** Of each row the file (an index) and line that it is at; -1 for none. */
  places: list(list(finite)),
  leftOut: natural,
});
export type TableData = ReturnType<typeof tableData>;

const step = object({ number: finite, duration: finite, busy: finite, idle: finite, phases: list(finite) });
export type Step = ReturnType<typeof step>;

const measured = object({ line: natural, cost: finite, self: finite, backward: finite, idle: finite, cpu: finite });
export type Measured = ReturnType<typeof measured>;

const sourceFile = object({ name: text, path: text, cost: finite, text: nullable(list(text)), lines: list(measured) });
export type SourceFile = ReturnType<typeof sourceFile>;

const finding = object({
  code: text,
  title: text,
  severity: oneOf("warning", "info", "hint"),
  file: finite,
  line: finite,
  place: text,
  message: text,
  remedy: text,
  saving: finite,
});
export type Finding = ReturnType<typeof finding>;

/** A call tree in rows, parents first: parent, name, kind, device, backward and CPU time of its own, file, line. */
const flame = object({ names: list(text), kinds: list(text), nodes: list(list(finite)) });
export type Flame = ReturnType<typeof flame>;

const memory = object({
  device: text,
  peak: finite,
  peakAt: finite,
  capacity: finite,
  begin: finite,
  points: list(list(finite)),
});
export type Memory = ReturnType<typeof memory>;

export const reportData = object({
  format: literal("deepscope-page-1"),
  title: text,
  isDevice: flag,
  facts: list(fact),
  figures: list(figure),
  /** Time of each phase; `phase` is its place among `phaseNames`. */
  split: list(object({ phase: natural, value: finite })),
  phaseNames: list(text),
  steps: list(step),
  findings: list(finding),
  tables: list(tableData),
  files: list(sourceFile),
  flame,
  memory: list(memory),
  notes: list(text),
});
export type ReportData = ReturnType<typeof reportData>;
