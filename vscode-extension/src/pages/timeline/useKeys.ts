/** Keys for the whole page, while nothing is typed into a field. */

import { useEffect, useRef } from "preact/hooks";
import type { Direction } from "./hit";
import { actionOf, type Action } from "./keys";
import type { Stage } from "./stage";

export interface Done {
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
