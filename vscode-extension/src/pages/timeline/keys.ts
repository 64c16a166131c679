/** What keys do on the whole page, while nothing is typed into a field. Each is listed once, for the listener and for the help. */

import type { Direction } from "./hit";
import type { Held } from "./view";
import { useEffect, useRef } from "preact/hooks";
import type { Stage } from "./stage";

type Action =
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
function actionOf(event: KeyboardEvent): Action | undefined {
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

interface Done {
  choose(direction: Direction): void;
  whole(): void;
  fit(): void;
  mark(): void;
  step(forward: boolean): void;
  help(): void;
  close(): void;
}

/** Steps of a key that is pressed shortly. */
const ZOOM = 1.5;
const PAN = 0.15;

export function useKeys(stage: Stage | undefined, done: Done): void {
  const latest = useRef(done);
  latest.current = done;
  useEffect(() => {
    if (stage === undefined) {
      return undefined;
    }
    const down = (event: KeyboardEvent): void => {
      const action = document.querySelector("dialog[open]") === null ? actionOf(event) : undefined;
      // Arrows belong to the page's other parts where one of these has the focus.
      const isElsewhere = event.target instanceof Element && event.target.closest(".stage, .timeline .tools") === null && event.target !== document.body;
      if (action === undefined || (isElsewhere && event.key.startsWith("Arrow"))) {
        return;
      }
      event.preventDefault();
      if (action.type === "close" && event.target instanceof HTMLInputElement) {
        event.target.blur();
      }
      act(stage, action, latest.current, event.repeat);
    };
    const up = (event: KeyboardEvent): void => {
      const action = actionOf(event);
      stage.motion.release(action?.type === "hold" ? action.key : undefined);
    };
    const blur = (): void => stage.motion.release();
    document.addEventListener("keydown", down);
    document.addEventListener("keyup", up);
    window.addEventListener("blur", blur);
    return () => {
      document.removeEventListener("keydown", down);
      document.removeEventListener("keyup", up);
      window.removeEventListener("blur", blur);
    };
  }, [stage]);
}

function act(stage: Stage, action: Action, done: Done, isRepeated: boolean): void {
  switch (action.type) {
    case "hold":
      if (!isRepeated) {
        stage.motion.move(action.key, ZOOM, PAN, stage.pointerPlace);
        stage.motion.hold(action.key);
      }
      break;
    case "scroll":
      stage.scroll(action.by);
      break;
    case "beside":
      done.choose(action.direction);
      break;
    case "search":
      document.getElementById("timeline-search")?.focus();
      break;
    case "next":
      done.step(true);
      break;
    case "previous":
      done.step(false);
      break;
    case "whole":
    case "fit":
    case "mark":
    case "help":
    case "close":
      done[action.type]();
      break;
  }
}
