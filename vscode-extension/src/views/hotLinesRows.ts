/** The rows of the Hot Lines view: lines by themselves or grouped, sorted by one of their numbers. */

import type { HotGroup, HotLine, HotLines, HotMetric, HotModule, VanishedLine } from "../server/contract";
import { baseName, placeName } from "../paths";

export const GROUPS = ["line", "function", "file", "module"] as const;
export type GroupBy = (typeof GROUPS)[number];
export const METRICS: readonly HotMetric[] = ["cost", "device", "cpu", "wait", "idle", "memory"];

/** The parts of a row stand in this order, since a narrow side bar cuts off what stands last. */
export interface Row {
  /** The same as long as the row means the same. */
  readonly id: string;
  /** Share and time of one step. */
  readonly amount: string;
  /** A place, a function, a file or a module. */
  readonly name: string;
  /** Since the baseline; "" where it is too small to mention. */
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
  readonly metric: HotMetric;
  /** Ids of rows that the user has hidden. Hiding takes rows away and changes no number. */
  readonly hidden: ReadonlySet<string>;
}

/** Rows of lines, the largest first; lines without the number are left out. */
export function lineRows(answer: HotLines, options: RowOptions): Row[] {
  const lines = shown(answer.lines.flatMap((line) => lineRow(line, options)), options);
  if (options.by === "line" || options.by === "module") {
    return lines;
  }
  const isFunction = options.by === "function";
  const members = new Map<string, Row[]>();
  for (const row of lines) {
    const key = keyOf(row.line, isFunction);
    members.set(key, [...(members.get(key) ?? []), row]);
  }
  const groups = isFunction ? answer.functions : answer.files;
  return shown(groups.flatMap((group) => groupRow(group, members.get(keyOf(group, isFunction)) ?? [], options)), options);
}

/** One row with the lines of the baseline that are no longer there below it; no row where none is missing. */
export function vanishedRows({ vanished, vanishedWords }: HotLines, hidden: ReadonlySet<string>): Row[] {
  const rows = vanished.map((line): Row => ({
    ...EMPTY,
    id: `gone:${line.file}:${line.line}:${line.text}`,
    amount: line.changeWords,
    name: placeName(line),
    rest: line.text,
    gone: line,
  }));
  const children = rows.filter((row) => !hidden.has(row.id));
  const name = `${rows.length} ${rows.length === 1 ? "line" : "lines"} no longer hot`;
  return children.length === 0 || hidden.has("gone") ? [] : [{ ...EMPTY, id: "gone", amount: vanishedWords, name, children }];
}

/** Rows of the model's modules. */
export function moduleRows(modules: readonly HotModule[], options: RowOptions): Row[] {
  const rows = modules.flatMap((module): Row[] => {
    // What a module costs beside its work is not known.
    const metric = options.metric === "cost" ? "device" : options.metric;
    const amount = module.amounts[metric];
    const own = metric === "device" ? module.ownWords : "";
    const row = {
      ...EMPTY,
      id: `module:${module.path}:${module.className}`,
      name: module.path || module.className,
      rest: [module.path === "" ? "" : module.className, own].filter((word) => word !== "").join(", "),
    };
    return amount === undefined ? [] : [{ ...row, amount: amount.words, share: amount.share }];
  });
  return shown(rows, options);
}

/** The way to the row of a line as it stands now, the outermost row first; empty where it has none. */
export function pathTo(rows: readonly Row[], uri: string, line: number): Row[] {
  for (const row of rows) {
    if (row.line?.uri === uri && row.line.currentLine === line && row.line.standing !== "gone") {
      return [row];
    }
    const below = pathTo(row.children, uri, line);
    if (below.length > 0) {
      return [row, ...below];
    }
  }
  return [];
}

/** What stands behind the amount. */
export function describedRow(row: Row): string {
  return described(row, row.line?.standing === "gone" ? struckOut(row.name) : row.name);
}

/** The same, with nothing left out. */
export function wholeRow(row: Row): string {
  return `${row.amount}  ${described(row, row.name)}`;
}

/** For those who listen. */
export function spokenRow(row: Row): string {
  const standing = row.line?.standing === "gone" ? "deleted" : "";
  return [row.name, row.amount, row.change, standing].filter((words) => words !== "").join(", ");
}

/** What "copy" puts on the clipboard. */
export function copyText(row: Row): string {
  const place = row.line ?? row.gone;
  const name = place === undefined ? row.name : `${place.file}:${place.currentLine ?? place.line}`;
  const words = [row.amount, row.change, row.rest].filter((part) => part !== "").join("  ");
  return [name, words, ...row.children.map((child) => `  ${copyText(child)}`)].join("\n");
}

/** VS Code strikes no row out, so each letter carries its stroke. */
function struckOut(text: string): string {
  return Array.from(text, (letter) => `${letter}\u0336`).join("");
}

const EMPTY = { change: "", rest: "", share: 0, line: undefined, gone: undefined, children: [] } as const;

function described(row: Row, name: string): string {
  return [name, row.change, row.rest].filter((words) => words !== "").join("  ");
}

function lineRow(line: HotLine, { metric }: RowOptions): Row[] {
  const amount = line.amounts[metric];
  const row = {
    ...EMPTY,
    id: `line:${line.file}:${line.line}`,
    change: metric === "cost" ? line.changeWords : "",
    name: placeName(line),
    rest: line.text,
    line,
  };
  return amount === undefined ? [] : [{ ...row, amount: amount.words, share: amount.share }];
}

function groupRow(group: HotGroup, members: readonly Row[], { by, metric }: RowOptions): Row[] {
  const amount = group.amounts[metric];
  const row = {
    ...EMPTY,
    id: `${by}:${keyOf(group, by === "function")}`,
    name: by === "function" ? group.function : baseName(group.shortFile),
    rest: group.shortFile,
    children: members,
  };
  return amount === undefined || members.length === 0 ? [] : [{ ...row, amount: amount.words, share: amount.share }];
}

function keyOf(of: Pick<HotGroup, "file" | "function"> | undefined, isFunction: boolean): string {
  return isFunction ? `${of?.file ?? ""}:${of?.function ?? ""}` : (of?.file ?? "");
}

/** Without what is hidden, the largest first. */
function shown(rows: readonly Row[], { hidden }: RowOptions): Row[] {
  return rows
    .filter((row) => !hidden.has(row.id))
    .sort((one, other) => other.share - one.share || (one.name < other.name ? -1 : 1));
}
