/** What keys do. Each is listed once, for the listener and for the page that explains them. */

import type { Direction } from "./hit";
import type { Held } from "./motion";

export type Action =
  | { readonly type: "hold"; readonly key: Held }
  | { readonly type: "scroll"; readonly by: number }
  | { readonly type: "beside"; readonly direction: Direction }
  | { readonly type: "whole" | "fit" | "mark" | "search" | "next" | "previous" | "help" | "close" };

interface Key {
  readonly keys: readonly string[];
  readonly words: string;
  readonly action: Action;
}

export const KEYS: readonly Key[] = [
  { keys: ["w", "+", "="], words: "zoom in", action: { type: "hold", key: "in" } },
  { keys: ["s", "-"], words: "zoom out", action: { type: "hold", key: "out" } },
  { keys: ["a", "ArrowLeft"], words: "move left", action: { type: "hold", key: "left" } },
  { keys: ["d", "ArrowRight"], words: "move right", action: { type: "hold", key: "right" } },
  { keys: ["ArrowUp"], words: "scroll up", action: { type: "scroll", by: -60 } },
  { keys: ["ArrowDown"], words: "scroll down", action: { type: "scroll", by: 60 } },
  { keys: ["0"], words: "show the whole", action: { type: "whole" } },
  { keys: ["f"], words: "fit the chosen slice", action: { type: "fit" } },
  { keys: ["m"], words: "mark the chosen slice's time", action: { type: "mark" } },
  { keys: ["."], words: "next slice in its row", action: { type: "beside", direction: "next" } },
  { keys: [","], words: "previous slice in its row", action: { type: "beside", direction: "previous" } },
  { keys: ["["], words: "the slice around it", action: { type: "beside", direction: "above" } },
  { keys: ["]"], words: "the first slice in it", action: { type: "beside", direction: "below" } },
  { keys: ["/"], words: "search", action: { type: "search" } },
  { keys: ["n"], words: "next found", action: { type: "next" } },
  { keys: ["p"], words: "previous found", action: { type: "previous" } },
  { keys: ["?"], words: "these keys", action: { type: "help" } },
  { keys: ["Escape"], words: "close, unmark, choose nothing", action: { type: "close" } },
];

/** What a key does; undefined where it is typed into a field, or is the browser's. */
export function actionOf(event: KeyboardEvent): Action | undefined {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f") {
    return { type: "search" };
  }
  const typed = event.target instanceof HTMLElement && event.target.closest("input, select, textarea, [contenteditable]") !== null;
  if (event.ctrlKey || event.metaKey || event.altKey || (typed && event.key !== "Escape")) {
    return undefined;
  }
  return KEYS.find(({ keys }) => keys.includes(event.key.length === 1 ? event.key.toLowerCase() : event.key))?.action;
}

/** A key as it is written on the keyboard. */
export function keyWords(key: string): string {
  return { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" }[key] ?? key;
}
