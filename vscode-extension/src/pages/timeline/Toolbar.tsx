/** Above the timeline: the search, the view's buttons, the colours. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Select } from "../parts/Controls";
import { count, duration } from "../words";
import type { Colouring } from "./palette";
import type { Finder } from "./useFinder";

interface Props {
  readonly finder: Finder;
  readonly find: string;
  readonly seek: (text: string) => void;
  readonly step: (forward: boolean) => void;
  readonly zoom: (factor: number) => void;
  readonly whole: () => void;
  readonly isMarking: boolean;
  readonly setMarking: (isMarking: boolean) => void;
  readonly colouring: Colouring;
  readonly colour: (by: Colouring) => void;
  readonly filter: string;
  readonly setFilter: (filter: string) => void;
  readonly help: () => void;
  readonly perfetto: () => void;
}

const COLOURINGS = [
  ["kind", "kind"],
  ["line", "line"],
  ["name", "name"],
] as const;

export function Toolbar(props: Props): JSX.Element {
  return (
    <div class="tools" role="toolbar" aria-label="Timeline">
      <Search {...props} />
      <span class="group">
        <button type="button" title="Zoom in (w)" aria-label="Zoom in" onClick={() => props.zoom(0.5)}>
          +
        </button>
        <button type="button" title="Zoom out (s)" aria-label="Zoom out" onClick={() => props.zoom(2)}>
          −
        </button>
        <button type="button" title="Show the whole (0)" onClick={props.whole}>
          All
        </button>
      </span>
      <button
        type="button"
        aria-pressed={props.isMarking}
        title="Drag marks a stretch of time (or: hold shift and drag)"
        onClick={() => props.setMarking(!props.isMarking)}
      >
        Mark
      </button>
      <label class="field">
        <span>Kernels by</span>
        <Select options={COLOURINGS} value={props.colouring} choose={props.colour} />
      </label>
      <input
        class="filter"
        type="search"
        placeholder="Filter tracks"
        aria-label="Filter tracks by their titles"
        value={props.filter}
        onInput={(event) => props.setFilter(event.currentTarget.value)}
      />
      <span class="grow" />
      <button type="button" class="plain" onClick={props.perfetto}>
        Perfetto…
      </button>
      <button type="button" class="plain" title="Keys (?)" aria-label="Keys" onClick={props.help}>
        ?
      </button>
    </div>
  );
}

const PAUSE_MS = 180;

function Search({ finder, find, seek, step }: Props): JSX.Element {
  const [text, setText] = useState(find);
  const timer = useRef(0);
  useEffect(() => setText(find), [find]);
  const typed = (value: string): void => {
    setText(value);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => seek(value), PAUSE_MS);
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === "Enter") {
      event.preventDefault();
      if (text === find) {
        step(!event.shiftKey);
      } else {
        window.clearTimeout(timer.current);
        seek(text);
      }
    }
  };
  const { matches } = finder;
  return (
    <span class="finder" role="search">
      <input
        id="timeline-search"
        type="search"
        placeholder={finder.title !== "" && find === "" ? finder.title : "Search slices  /"}
        aria-label="Search slices by name"
        value={text}
        onInput={(event) => typed(event.currentTarget.value)}
        onKeyDown={pressed}
      />
      {finder.title !== "" && (
        <>
          <button type="button" title="Previous (p)" aria-label="Previous found" disabled={matches?.count === 0} onClick={() => step(false)}>
            ‹
          </button>
          <button type="button" title="Next (n)" aria-label="Next found" disabled={matches?.count === 0} onClick={() => step(true)}>
            ›
          </button>
          <output class="muted" title={finder.problem}>
            {finder.problem !== ""
              ? "failed"
              : matches === undefined
                ? "…"
                : matches.count === 0
                  ? "nothing found"
                  : `${finder.number > 0 ? `${finder.number} of ` : ""}${count(matches.count)} · ${duration(matches.timeNs)}`}
          </output>
          {find === "" && (
            <button type="button" class="plain" aria-label="End the search" title="End the search" onClick={() => seek("")}>
              ×
            </button>
          )}
        </>
      )}
    </span>
  );
}
