/** The files that lines stand in, as a tree with sums: folders that hold one folder alone are one. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Column, LineFile } from "../contract";
import { toggled } from "../parts/Controls";
import { words } from "../words";
import { Tree, type Look, type TreeRow } from "./Tree";

const TITLES = { project: "", outside: "Outside the project", library: "Libraries" } as const;
const GROUPS = ["project", "outside", "library"] as const;

interface Props {
  readonly files: readonly LineFile[];
  readonly columns: readonly Column[];
  readonly wholes: readonly (number | null)[];
  /** The column whose sums are shown. */
  readonly by: number;
  readonly wanted: string;
  readonly chosen: string;
  readonly choose: (file: string) => void;
}

export function FileTree({ files, columns, wholes, by, wanted, chosen, choose }: Props): JSX.Element {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  // Totals overlap and have no sums: the files are then shown by their cost.
  const column = wholes[by] == null ? 0 : by;
  const trees = useMemo(() => GROUPS.map((group) => ({ title: TITLES[group], tree: fileTree(files.filter((file) => file.group === group), group) })), [files]);
  const shown = useMemo(
    () =>
      trees.flatMap(({ title, tree }): (FileRow | Title)[] => {
        const rows = treeRows(tree, column, closed, wanted);
        return [...(rows.length > 0 && title !== "" ? [{ key: title, depth: 0, isOpen: undefined, title }] : []), ...rows];
      }),
    [trees, closed, wanted, column],
  );
  const whole = wholes[column] ?? 0;
  const act = (row: FileRow | Title): void => {
    if ("title" in row) {
      return;
    }
    if (row.file === undefined) {
      setClosed(toggled(closed, row.key));
    } else {
      choose(row.file.file);
    }
  };
  const lookOf = (row: FileRow | Title): Look | string => {
    if ("title" in row) {
      return row.title;
    }
    const { name, file, depth } = row;
    const value = row.values[column] ?? 0;
    const content = (
      <>
        <span class={`name ${file === undefined ? "muted" : ""}`}>{name}</span>
        <span class="number">{value > 0 ? words(value, columns[column]?.kind ?? "time") : ""}</span>
      </>
    );
    const isLibrary = (file?.group ?? row.key.split("/")[0]) === "library"; // their time is the user's lines'
    const part = isLibrary || whole <= 0 ? 0 : Math.min(1, value / whole);
    return { title: file?.file ?? name, indent: 8 + depth * 13, part, isChosen: file?.file === chosen, content };
  };
  return <Tree name="file" label="Files" rows={shown} of={files} act={act} lookOf={lookOf} />;
}

/** Of a group of files. */
interface Title extends TreeRow {
  readonly key: string;
  readonly title: string;
}

interface Folder {
  /** The way from the folder above: `src/nets` where `src` has nothing else. */
  readonly name: string;
  /** From the top, which tells folders apart. */
  readonly path: string;
  /** By column; null for what does not add up. */
  readonly values: readonly (number | null)[];
  readonly folders: readonly Folder[];
  readonly files: readonly LeafFile[];
}

interface LeafFile {
  readonly name: string;
  readonly of: LineFile;
}

interface FileRow extends TreeRow {
  readonly key: string;
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** Of a file; undefined for a folder. */
  readonly file: LineFile | undefined;
}

interface Draft {
  readonly folders: Map<string, Draft>;
  readonly files: LeafFile[];
}

/** The tree of the files of a group. */
export function fileTree(files: readonly LineFile[], group = ""): Folder {
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
  return finished(root, "", group);
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
  };
}

/** Sums by column; null where any of them does not add up. */
function added(rows: readonly (readonly (number | null)[])[]): (number | null)[] {
  const [first = []] = rows;
  return first.map((_, at) => rows.reduce<number | null>((sum, row) => (sum === null || row[at] == null ? null : sum + row[at]), 0));
}

/** The rows that are to be seen, by the column `by`: what is in no closed folder; `wanted` keeps paths that have it. */
export function treeRows(root: Folder, by: number, closed: ReadonlySet<string>, wanted: string): FileRow[] {
  const word = wanted.toLowerCase();
  const rows: FileRow[] = [];
  const visit = (folder: Folder, depth: number): void => {
    // What costs more stands first, whether it is a folder or a file.
    const items = [...folder.folders.map((one) => ({ values: one.values, one })), ...folder.files.map((one) => ({ values: one.of.values, one }))];
    for (const { one } of items.sort((first, second) => (second.values[by] ?? 0) - (first.values[by] ?? 0))) {
      if ("of" in one) {
        if (word === "" || one.of.name.toLowerCase().includes(word)) {
          rows.push({ depth, key: one.of.file, name: one.name, values: one.of.values, file: one.of, isOpen: undefined });
        }
        continue;
      }
      const isOpen = word !== "" || !closed.has(one.path);
      const at = rows.length;
      rows.push({ depth, key: one.path, name: one.name, values: one.values, file: undefined, isOpen });
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
