/** Paths of any system: what lies below what, and what a line's place is called. */

import * as path from "node:path";

/** Whether a path is one of the folders or lies below one. */
export function isBelowAny(file: string, folders: readonly string[]): boolean {
  return folders.some((folder) => {
    const relative = path.relative(folder, file);
    return relative === "" || (relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative));
  });
}

interface NamedPlace {
  /** As recorded. */
  readonly file: string;
  readonly line: number;
  readonly uri?: string | null;
  readonly currentLine?: number | null;
}

/** `model.py:42`; a notebook's cell has the notebook's name, since its own is a number. */
export function placeName({ file, line, uri, currentLine }: NamedPlace): string {
  const notebook = /^vscode-notebook-cell:[^#?]*?([^/#?]+)(?:[#?]|$)/.exec(uri ?? "")?.[1];
  return `${notebook === undefined ? baseName(file) : decoded(notebook)}:${currentLine ?? line}`;
}

/** The last part of a path of any system. */
export function baseName(file: string): string {
  return file.split(/[/\\]/).at(-1) ?? file;
}

/** The folder of a path of any system. */
export function parentOf(file: string): string {
  const end = Math.max(file.lastIndexOf("/"), file.lastIndexOf("\\"));
  return end > 0 ? file.slice(0, end) : file;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** An absolute path on this machine's own disks: a path to another machine (`\\host\share`) is never even looked at. */
export function isLocalAbsolute(file: string): boolean {
  return /^\/(?!\/)/.test(file) || /^[A-Za-z]:[\\/](?![\\/])/.test(file);
}
