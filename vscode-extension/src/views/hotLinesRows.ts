/** The rows of the Hot Lines view: lines by themselves or grouped, sorted by one of their numbers. */

import type { HotLine, Module } from "../server/contract";
import { bar, duration, share, size } from "../units";

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
const BAR_CELLS = 6;

export interface Row {
  /** The same as long as the row means the same. */
  readonly id: string;
  readonly label: string;
  readonly description: string;
  readonly share: number;
  readonly line: HotLine | undefined;
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

/** Rows of the model's modules: by device time with what is in them, by the other numbers their own. */
export function moduleRows(modules: readonly Module[], options: RowOptions): Row[] {
  const name = options.metric === "device" ? "total_device_ns" : NUMBER[options.metric];
  const whole = modules.reduce((sum, module) => sum + (module.numbers[name] ?? 0), 0);
  const rows = modules.map((module): Row => {
    const value = module.numbers[name] ?? 0;
    const own = options.metric === "device" ? ownWords(module, options) : "";
    const rest = module.path === "" ? "" : `  ${module.className}`;
    const part = options.metric === "device" ? module.share : ratio(value, whole);
    return {
      id: `module:${module.path}:${module.className}`,
      label: module.path || module.className,
      description: `${described(value, part, options)}${own}${rest}`,
      share: part,
      line: undefined,
      children: [],
    };
  });
  return sorted(rows.filter((row) => row.share > 0 && !options.hidden.has(row.id)));
}

/** What "copy" puts on the clipboard. */
export function copyText(row: Row): string {
  const place = row.line === undefined ? row.label : `${row.line.file}:${row.line.line}`;
  return [place, row.description.replace(/ [█▏▎▍▌▋▊▉]+/u, ""), ...row.children.map((child) => `  ${copyText(child)}`)].join("\n");
}

function lineRow(line: HotLine, whole: number, options: RowOptions): Row {
  const value = valueOf(line, options.metric);
  const part = options.metric === "device" ? line.share : ratio(value, whole);
  const place = `${baseName(line.shortFile)}:${line.currentLine ?? line.line}`;
  return {
    id: `line:${line.file}:${line.line}`,
    label: place,
    description: `${described(value, part, options)}${line.text === "" ? "" : `  ${line.text}`}`,
    share: part,
    line,
    children: [],
  };
}

function groupRow(key: string, members: readonly Row[], whole: number, options: RowOptions): Row {
  const value = members.reduce((sum, row) => sum + (row.line === undefined ? 0 : valueOf(row.line, options.metric)), 0);
  const part = options.metric === "device" ? members.reduce((sum, row) => sum + row.share, 0) : ratio(value, whole);
  const line = members[0]?.line;
  const label = options.by === "function" ? (line?.function ?? key) : (line?.shortFile ?? key);
  const where = options.by === "function" ? `  ${line?.shortFile ?? ""}` : "";
  return {
    id: `${options.by}:${key}`,
    label,
    description: `${described(value, part, options)}${where}`,
    share: part,
    line: undefined,
    children: members,
  };
}

function keyOf(row: Row, by: GroupBy): string {
  return by === "function" ? `${row.line?.file ?? ""}:${row.line?.function ?? ""}` : (row.line?.file ?? "");
}

/** `38 % ██▎ 12.4 ms`: the share first, since a narrow side bar cuts off what stands behind. */
function described(value: number, part: number, options: RowOptions): string {
  const perStep = value / Math.max(1, options.divisor);
  const amount = options.metric === "memory" ? size(perStep) : duration(perStep);
  return `${share(part)} ${bar(part, BAR_CELLS)} ${amount}`;
}

function ownWords(module: Module, options: RowOptions): string {
  const own = module.numbers["self_device_ns"] ?? 0;
  return own > 0 ? `, own ${duration(own / Math.max(1, options.divisor))}` : "";
}

function valueOf(line: HotLine, metric: Metric): number {
  return line.numbers[NUMBER[metric]] ?? 0;
}

function sorted<R extends Row>(rows: readonly R[]): R[] {
  return [...rows].sort((one, other) => other.share - one.share || (one.label < other.label ? -1 : 1));
}

function ratio(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}

function baseName(file: string): string {
  return file.split(/[/\\]/).at(-1) ?? file;
}
