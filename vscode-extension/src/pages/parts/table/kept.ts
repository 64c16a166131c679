/** What a reader chose for a kind of table, kept by the browser. */

import { useState } from "preact/hooks";
import type { Chosen } from "./fit";

/** The columns that are chosen for tables of this name, and how to choose others. */
export function useChosenColumns(table: string): readonly [Chosen, (chosen: Chosen) => void] {
  const key = `deepscope.columns.${table}`;
  const [chosen, choose] = useState<Chosen>(() => remembered(key));
  return [
    chosen,
    (next) => {
      choose(next);
      try {
        window.localStorage.setItem(key, JSON.stringify(next));
      } catch {
        // Not remembered where the browser keeps nothing.
      }
    },
  ];
}

function remembered(key: string): Chosen {
  try {
    const found: unknown = JSON.parse(window.localStorage.getItem(key) ?? "{}");
    return typeof found === "object" && found !== null ? Object.fromEntries(Object.entries(found).filter(([, is]) => typeof is === "boolean")) : {};
  } catch {
    return {};
  }
}
