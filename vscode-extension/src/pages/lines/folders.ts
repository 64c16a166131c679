/** Files as a tree: folders that hold one folder alone are one, sums go up. */

import type { LineFile } from "../contract";

export interface Folder {
  /** The way from the folder above: `src/nets` where `src` has nothing else. */
  readonly name: string;
  /** From the top, which tells folders apart. */
  readonly path: string;
  /** By column; null for what does not add up. */
  readonly values: readonly (number | null)[];
  readonly lines: number;
  readonly folders: readonly Folder[];
  readonly files: readonly LeafFile[];
}

export interface LeafFile {
  readonly name: string;
  readonly of: LineFile;
}

export interface TreeRow {
  readonly depth: number;
  readonly key: string;
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** Of a file; undefined for a folder. */
  readonly file: LineFile | undefined;
  readonly isFolder: boolean;
  readonly isOpen: boolean;
}

interface Draft {
  readonly folders: Map<string, Draft>;
  readonly files: LeafFile[];
}

/** The tree of some files. */
export function fileTree(files: readonly LineFile[]): Folder {
  const root: Draft = { folders: new Map(), files: [] };
  for (const file of files) {
    const parts = file.name.split("/");
    const last = parts.pop() ?? "";
    let folder = root;
    for (const part of parts[0] === "" ? [`/${parts[1] ?? ""}`, ...parts.slice(2)] : parts) {
      const next = folder.folders.get(part) ?? { folders: new Map<string, Draft>(), files: [] };
      folder.folders.set(part, next);
      folder = next;
    }
    folder.files.push({ name: last === "" ? file.name : last, of: file });
  }
  return finished(root, "", "");
}

function finished(draft: Draft, name: string, path: string): Folder {
  const [only] = draft.folders;
  if (name !== "" && only !== undefined && draft.folders.size === 1 && draft.files.length === 0) {
    return finished(only[1], `${name}/${only[0]}`, `${path}/${only[0]}`);
  }
  const folders = [...draft.folders].map(([part, below]) => finished(below, part, `${path}/${part}`));
  const { files } = draft;
  const below = [...folders.map(({ values }) => values), ...files.map(({ of }) => of.values)];
  return {
    name,
    path,
    folders,
    files,
    values: added(below),
    lines: folders.reduce((sum, one) => sum + one.lines, 0) + files.reduce((sum, one) => sum + one.of.lines, 0),
  };
}

/** Sums by column; null where any of them does not add up. */
export function added(rows: readonly (readonly (number | null)[])[]): (number | null)[] {
  const [first = []] = rows;
  return first.map((_, at) => rows.reduce<number | null>((sum, row) => (sum === null || row[at] == null ? null : sum + row[at]), 0));
}

/** The rows that are to be seen, by the column `by`: what is in no closed folder; `wanted` keeps paths that have it. */
export function treeRows(root: Folder, by: number, closed: ReadonlySet<string>, wanted: string): TreeRow[] {
  const word = wanted.toLowerCase();
  const rows: TreeRow[] = [];
  const visit = (folder: Folder, depth: number): void => {
    // What costs more stands first, whether it is a folder or a file.
    const items = [...folder.folders.map((one) => ({ values: one.values, one })), ...folder.files.map((one) => ({ values: one.of.values, one }))];
    for (const { one } of items.sort((first, second) => (second.values[by] ?? 0) - (first.values[by] ?? 0))) {
      if ("of" in one) {
        if (word === "" || one.of.name.toLowerCase().includes(word)) {
          rows.push({ depth, key: one.of.file, name: one.name, values: one.of.values, file: one.of, isFolder: false, isOpen: false });
        }
        continue;
      }
      const isOpen = word !== "" || !closed.has(one.path);
      const at = rows.length;
      rows.push({ depth, key: one.path, name: one.name, values: one.values, file: undefined, isFolder: true, isOpen });
      if (isOpen) {
        visit(one, depth + 1);
      }
      if (word !== "" && rows.length === at + 1) {
        rows.pop();
      }
    }
  };
  visit(root, 0);
  return rows;
}
