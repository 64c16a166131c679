/** The files that lines stand in, as a tree with sums. */

import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Column, LineFile } from "../contract";
import { useVirtual } from "../parts/table/useVirtual";
import { words } from "../words";
import { fileTree, treeRows, type TreeRow } from "./folders";

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
