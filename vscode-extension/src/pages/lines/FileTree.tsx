/** The files that lines stand in, as a tree with sums: folders that hold one folder alone are one. */

import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Column, LineFile } from "../contract";
import { useVirtual } from "../parts/table/useVirtual";
import { words } from "../words";

const ROW = 24;
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

interface Shown {
  readonly title: string;
  readonly row: TreeRow | undefined;
}

export function FileTree({ files, columns, wholes, by, wanted, chosen, choose }: Props): JSX.Element {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [active, setActive] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  // Totals overlap and have no sums: the files are then shown by their cost.
  const column = wholes[by] == null ? 0 : by;
  const trees = useMemo(
    () => GROUPS.map((group) => ({ group, tree: fileTree(files.filter((file) => file.group === group)) })),
    [files],
  );
  const shown = useMemo(
    () =>
      trees.flatMap(({ group, tree }): Shown[] => {
        const rows = treeRows(tree, column, prefixed(closed, group), wanted);
        const title = TITLES[group];
        return [...(rows.length > 0 && title !== "" ? [{ title, row: undefined }] : []), ...rows.map((row) => ({ title: group, row }))];
      }),
    [trees, closed, wanted, column],
  );
  const sight = useVirtual(shown.length, scroller, ROW, 0);
  const toggle = (group: string, key: string, isOpen: boolean): void => {
    const next = new Set(closed);
    if (isOpen) {
      next.add(`${group}:${key}`);
    } else {
      next.delete(`${group}:${key}`);
    }
    setClosed(next);
  };
  const act = ({ title, row }: Shown): void => {
    if (row?.file !== undefined) {
      choose(row.file.file);
    } else if (row !== undefined) {
      toggle(title, row.key, row.isOpen);
    }
  };
  const pressed = (event: KeyboardEvent): void => {
    const one = shown[active];
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -shown.length, End: shown.length }[event.key];
    if (step !== undefined) {
      const next = Math.max(0, Math.min(active + step, shown.length - 1));
      setActive(next);
      sight.show(next);
    } else if ((event.key === "Enter" || event.key === " ") && one !== undefined) {
      act(one);
    } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && one?.row?.isFolder === true) {
      toggle(one.title, one.row.key, event.key === "ArrowLeft");
    } else {
      return;
    }
    event.preventDefault();
  };
  const whole = wholes[column] ?? 0;
  return (
    <div class="filetree" role="tree" aria-label="Files" tabIndex={0} ref={scroller} onKeyDown={pressed} aria-activedescendant={`file-${active}`}>
      <div style={{ paddingTop: `${sight.before}px`, paddingBottom: `${sight.after}px` }}>
        {sight.items.map(({ index }) => {
          const one = shown[index];
          if (one?.row === undefined) {
            return (
              <div key={`title ${one?.title ?? ""}`} class="filetitle" id={`file-${index}`}>
                {one?.title}
              </div>
            );
          }
          const { row } = one;
          const value = row.values[column] ?? 0;
          return (
            <div
              key={`${one.title} ${row.key}`}
              id={`file-${index}`}
              class={`filerow ${index === active ? "active" : ""} ${row.file?.file === chosen ? "chosen" : ""}`}
              role="treeitem"
              aria-level={row.depth + 1}
              aria-expanded={row.file === undefined ? row.isOpen : undefined}
              aria-selected={row.file?.file === chosen}
              title={row.file?.file ?? row.name}
              style={{ paddingLeft: `${8 + row.depth * 13}px`, "--part": one.title === "library" || whole <= 0 ? 0 : Math.min(1, value / whole) }}
              onClick={() => {
                setActive(index);
                act(one);
              }}
            >
              <span class="twist" aria-hidden>
                {row.file !== undefined ? "" : row.isOpen ? "▾" : "▸"}
              </span>
              <span class={`name ${row.file === undefined ? "muted" : ""}`}>{row.name}</span>
              <span class="number">{value > 0 ? words(value, columns[column]?.kind ?? "time") : ""}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

function prefixed(closed: ReadonlySet<string>, group: string): ReadonlySet<string> {
  return new Set([...closed].flatMap((key) => (key.startsWith(`${group}:`) ? [key.slice(group.length + 1)] : [])));
}

interface Folder {
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

interface LeafFile {
  readonly name: string;
  readonly of: LineFile;
}

interface TreeRow {
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
function added(rows: readonly (readonly (number | null)[])[]): (number | null)[] {
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
