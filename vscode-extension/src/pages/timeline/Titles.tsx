/** The tracks' titles at the left: each opens and closes its track. */

import type { JSX } from "preact";
import { count } from "../words";
import { heightOf, pinnedHeight, type Lane } from "./layout";
import { valueWords } from "../parts/units";

interface Props {
  readonly lanes: readonly Lane[];
  readonly turn: (key: string) => void;
}

export function Titles({ lanes, turn }: Props): JSX.Element {
  return (
    <div class="tall" style={{ height: `${heightOf(lanes)}px`, "--pinned": `${pinnedHeight(lanes)}px` }}>
      {lanes.map((lane) => (
        <div
          key={lane.key}
          class={`lanetitle ${lane.head > 0 ? "above" : ""} ${isPinned(lane) ? "pinned" : ""}`}
          style={{ top: `${lane.y}px`, height: `${lane.head > 0 && isPinned(lane) ? lane.head : lane.height}px` }}
        >
          <div class="held">
          {canTurn(lane) ? (
            <button type="button" aria-expanded={lane.isOpen} title={`${lane.title} · ${about(lane)}`} onClick={() => turn(lane.key)}>
              <Triangle />
              <span>{lane.title}</span>
            </button>
          ) : (
            <span class="fixed" title={`${lane.title} · ${about(lane)}`}>
              <span>{lane.title}</span>
            </span>
          )}
          {lane.height >= 36 && lane.head === 0 && <small>{about(lane)}</small>}
          </div>
        </div>
      ))}
    </div>
  );
}

function isPinned(lane: Lane): boolean {
  return lane.type === "track" && lane.track.kind === "steps";
}

function canTurn(lane: Lane): boolean {
  return lane.type === "counter" || lane.track.rows > 1;
}

function about(lane: Lane): string {
  if (lane.type === "counter") {
    return `up to ${valueWords(lane.counter.largest, lane.counter.unit)}`;
  }
  const { slices, isTraining } = lane.track;
  return `${isTraining ? "trains · " : ""}${count(slices)} ${slices === 1 ? "slice" : "slices"}`;
}

function Triangle(): JSX.Element {
  return (
    <svg viewBox="0 0 8 8" width="8" height="8" aria-hidden="true">
      <path d="M2 1l4 3-4 3z" />
    </svg>
  );
}
