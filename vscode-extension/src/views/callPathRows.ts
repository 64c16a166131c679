/** Rows of the Call Paths view, each with an id of its own. */

import { KIND_WORDS } from "../depths";
import type { LinePath, RecordedLine } from "../server/contract";
import { placeName } from "../paths";

/** A line in a chain of calls, or a part of a line's work. */
export interface PathRow {
  readonly id: string;
  readonly path: LinePath;
  /** Where a click goes: a part without a file that is here leads to the line whose work it is. */
  readonly opens: RecordedLine | undefined;
  /** Whether it is unfolded at first: the way down to most of the time, and what leads to lines alone. */
  readonly isOpen: boolean;
  readonly children: readonly PathRow[];
}

const MAIN_SHARE = 0.5;
/** Where parts have no file, it is known from a list of icons: https://code.visualstudio.com/api/references/icons-in-labels */
const ICONS: Readonly<Record<LinePath["kind"], string>> = {
  line: "symbol-method",
  module: "symbol-class",
  library: "library",
  operator: "symbol-operator",
  kernel: "chip",
  other: "ellipsis",
};

/** The rows of some paths below a row (or a section) with the id `above`; `owner` is the line that these are parts of, if they are. */
export function pathRows(paths: readonly LinePath[], above: string, owner?: RecordedLine): PathRow[] {
  const known = new Set<string>();
  const whole = paths.reduce((sum, path) => sum + path.ns, 0);
  return paths.map((path) => {
    let id = `${above}>${path.kind === "line" ? "" : `${path.kind} ${path.wholeName} `}${path.file}:${path.line}`;
    while (known.has(id)) {
      id += "'"; // names that differ in what cannot be printed alone
    }
    known.add(id);
    const line = path.kind === "line" ? recorded(path) : owner;
    const children = pathRows(path.children, id, line);
    const isOpen = path.ns >= MAIN_SHARE * whole || path.children.every(({ kind }) => kind === "line");
    return { id, path, opens: hasOwnPlace(path) ? recorded(path) : line, isOpen, children };
  });
}

/** Whether a click on it goes to a place of its own that is no measured line. */
export function opensPart({ path }: PathRow): boolean {
  return path.kind !== "line" && hasOwnPlace(path);
}

export function iconOf({ path }: PathRow): string {
  return ICONS[path.kind];
}

/** Behind a row's name: its time, and its place where it has one. */
export function describedPath({ path }: PathRow): string {
  return path.line > 0 ? `${path.timeWords}  ${placeName(path)}` : path.timeWords;
}

/** All that is known of it, as plain paragraphs. */
export function pathParagraphs({ path }: PathRow, stepWords: string): string[] {
  const kind = path.kind === "line" ? "" : `${KIND_WORDS[path.kind]} `;
  const place = path.line > 0 ? ` — ${path.file}:${path.currentLine ?? path.line}` : "";
  const details = path.detailWords === "" ? "" : `: ${path.detailWords}`;
  return [`${kind}${path.kind === "other" ? path.name : path.wholeName}${place}`, `${path.timeWords} ${stepWords}${details}`];
}

function hasOwnPlace(path: LinePath): boolean {
  return path.line > 0 && (path.kind === "line" || path.uri !== null);
}

function recorded({ file, line }: LinePath): RecordedLine | undefined {
  return line > 0 ? { file, line } : undefined;
}
