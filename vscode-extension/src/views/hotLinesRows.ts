/** The rows of the Hot Lines view: lines by themselves or grouped, sorted by one of their numbers. */

import type { HotLine, Module, VanishedLine } from "../server/contract";
import { difference, duration, share, size } from "../units";
import { baseName, placeName, shortPlace } from "./placeNames";

export const GROUPS = ["line", "function", "file", "module"] as const;
export type GroupBy = (typeof GROUPS)[number];
export const METRICS = ["device", "cpu", "wait", "idle", "memory"] as const;
export type Metric = (typeof METRICS)[number];

const NUMBER: Readonly<Record<Metric, string>> = {
  device: "self_device_ns",
  cpu: "self_cpu_ns",
  wait: "wait_ns",
  idle: "idle_ns",
  memory: "bytes_allocated",
};
/** Of the whole: smaller changes since the baseline are not spoken of. */
const CHANGE_SHARE = 0.005;

/** The parts of a row stand in this order, since a narrow side bar cuts off what stands last. */
export interface Row {
  /** The same as long as the row means the same. */
  readonly id: string;
  /** Share and time of one step. */
  readonly amount: string;
  /** A place, a function, a file or a module. */
  readonly name: string;
  /** Since the baseline; "" for none, or none to speak of. */
  readonly change: string;
  /** The line's text, or where a function is. */
  readonly rest: string;
  readonly share: number;
  readonly line: HotLine | undefined;
  /** A line of the baseline that is no longer there. */
  readonly gone: VanishedLine | undefined;
  readonly children: readonly Row[];
}

export interface RowOptions {
  readonly by: GroupBy;
  readonly metric: Metric;
  /** Sums are divided by this: the mean of a step and a rank is shown. */
  readonly divisor: number;
  /** Ids of rows that the user has hidden. */
  readonly hidden: ReadonlySet<string>;
}

/** Rows of lines; the largest first, those without the number left out. */
export function lineRows(lines: readonly HotLine[], options: RowOptions): Row[] {
  const whole = lines.reduce((sum, line) => sum + valueOf(line, options.metric), 0);
  const rows = lines
    .filter((line) => valueOf(line, options.metric) > 0)
    .map((line) => lineRow(line, whole, options))
    .filter((row) => !options.hidden.has(row.id));
  if (options.by === "line" || options.by === "module") {
    return sorted(rows);
  }
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = keyOf(row, options.by);
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  const grouped = [...groups].map(([key, members]) => groupRow(key, sorted(members), whole, options));
  return sorted(grouped.filter((row) => !options.hidden.has(row.id)));
}

/** The lines of the baseline that are no longer there, below one row; none where none is missing. */
export function vanishedRows(lines: readonly VanishedLine[], hidden: ReadonlySet<string>): Row[] {
  const rows = lines.map((line): Row => ({
    ...EMPTY,
    id: `gone:${line.file}:${line.line}:${line.text}`,
    amount: difference(-line.perStepNs),
    name: placeName(line),
    rest: line.text,
    gone: line,
  }));
  const children = rows.filter((row) => !hidden.has(row.id));
  const whole = children.reduce((sum, row) => sum + (row.gone?.perStepNs ?? 0), 0);
  const name = `${children.length} ${children.length === 1 ? "line" : "lines"} no longer hot`;
  return children.length === 0 || hidden.has("gone") ? [] : [{ ...EMPTY, id: "gone", amount: difference(-whole), name, children }];
}

/** Rows of the model's modules: by device time with what is in them, by the other numbers their own. */
export function moduleRows(modules: readonly Module[], options: RowOptions): Row[] {
  const name = options.metric === "device" ? "total_device_ns" : NUMBER[options.metric];
  const whole = modules.reduce((sum, module) => sum + (module.numbers[name] ?? 0), 0);
  const rows = modules.map((module): Row => {
    const value = module.numbers[name] ?? 0;
    const part = options.metric === "device" ? module.share : ratio(value, whole);
    const own = options.metric === "device" ? ownWords(module, options) : "";
    return {
      ...EMPTY,
      id: `module:${module.path}:${module.className}`,
      amount: amountOf(value, part, options),
      name: module.path || module.className,
      rest: [module.path === "" ? "" : module.className, own].filter((word) => word !== "").join(", "),
      share: part,
    };
  });
  return sorted(rows.filter((row) => row.share > 0 && !options.hidden.has(row.id)));
}

/** What stands behind the amount. */
export function describedRow(row: Row): string {
  return described(row, row.line === undefined && row.gone === undefined ? row.name : shortPlace(row.name));
}

/** The same, with nothing left out. */
export function wholeRow(row: Row): string {
  return `${row.amount}  ${described(row, row.name)}`;
}

/** What "copy" puts on the clipboard. */
export function copyText(row: Row): string {
  const place = row.line ?? row.gone;
  const name = place === undefined ? row.name : `${place.file}:${place.currentLine ?? place.line}`;
  const words = [row.amount, row.change, row.rest].filter((part) => part !== "").join("  ");
  return [name, words, ...row.children.map((child) => `  ${copyText(child)}`)].join("\n");
}

const EMPTY = { change: "", rest: "", share: 0, line: undefined, gone: undefined, children: [] } as const;

function described(row: Row, name: string): string {
  return [name, row.change, row.rest].filter((words) => words !== "").join("  ");
}

function lineRow(line: HotLine, whole: number, options: RowOptions): Row {
  const value = valueOf(line, options.metric);
  const part = options.metric === "device" ? line.share : ratio(value, whole);
  return {
    ...EMPTY,
    id: `line:${line.file}:${line.line}`,
    amount: amountOf(value, part, options),
    change: options.metric === "device" ? changeOf(line, whole / Math.max(1, options.divisor)) : "",
    name: placeName(line),
    rest: line.text,
    share: part,
    line,
  };
}

function groupRow(key: string, members: readonly Row[], whole: number, options: RowOptions): Row {
  const value = members.reduce((sum, row) => sum + (row.line === undefined ? 0 : valueOf(row.line, options.metric)), 0);
  const part = options.metric === "device" ? members.reduce((sum, row) => sum + row.share, 0) : ratio(value, whole);
  const line = members[0]?.line;
  const file = line?.shortFile ?? key;
  return {
    ...EMPTY,
    id: `${options.by}:${key}`,
    amount: amountOf(value, part, options),
    name: options.by === "function" ? (line?.function ?? key) : baseName(file),
    rest: file,
    share: part,
    children: members,
  };
}

function keyOf(row: Row, by: GroupBy): string {
  return by === "function" ? `${row.line?.file ?? ""}:${row.line?.function ?? ""}` : (row.line?.file ?? "");
}

/** `38 % · 12.4 ms` */
function amountOf(value: number, part: number, options: RowOptions): string {
  const perStep = value / Math.max(1, options.divisor);
  return `${share(part)} · ${options.metric === "memory" ? size(perStep) : duration(perStep)}`;
}

function changeOf(line: HotLine, wholePerStepNs: number): string {
  if (line.baselineNs === null) {
    return "";
  }
  const change = line.perStepNs - line.baselineNs;
  const isNew = line.baselineNs === 0 && line.perStepNs > 0;
  return Math.abs(change) < CHANGE_SHARE * wholePerStepNs ? "" : isNew ? "new" : difference(change);
}

function ownWords(module: Module, options: RowOptions): string {
  const own = module.numbers["self_device_ns"] ?? 0;
  return own > 0 ? `own ${duration(own / Math.max(1, options.divisor))}` : "";
}

function valueOf(line: HotLine, metric: Metric): number {
  return line.numbers[NUMBER[metric]] ?? 0;
}

function sorted<R extends Row>(rows: readonly R[]): R[] {
  return [...rows].sort((one, other) => other.share - one.share || (one.name < other.name ? -1 : 1));
}

function ratio(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}
