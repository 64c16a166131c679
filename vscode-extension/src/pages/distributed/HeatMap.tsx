/** A cell for each rank, the darker the longer its own time is beside the median; a click opens the rank. And the shades of a table's numbers. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Distributed, Table } from "../contract";
import { Legend } from "../parts/Figures";
import { time } from "../words";

/** So many ranks have their numbers in their cells. */
const NUMBERED = 128;
const ACROSS = 8;

interface Props {
  readonly of: Distributed;
  readonly chosen: number | undefined;
  readonly choose: (rank: number | undefined) => void;
  readonly opens: (rank: number) => boolean;
}

export function HeatMap({ of, chosen, choose, opens }: Props): JSX.Element {
  const { ranks, ownNs, medianOwnNs, levels, hosts, hostOf } = of;
  const blocks = blocksOf(of);
  const order = blocks.flatMap(({ places }) => places);
  const [reached, setActive] = useState(Math.max(chosen === undefined ? 0 : order.indexOf(ranks.indexOf(chosen)), 0));
  const active = Math.min(reached, order.length - 1); // another run may have fewer ranks
  const list = useRef<HTMLDivElement>(null);
  const canOpen = ranks.some(opens);
  const move = (event: KeyboardEvent): void => {
    const next = stepped(event.key, active, order.length);
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    event.preventDefault();
    setActive(next);
    list.current?.querySelector<HTMLElement>(`[data-place="${order[next] ?? 0}"]`)?.focus();
  };
  return (
    <figure class={`rankmap ${ranks.length > NUMBERED ? "small" : ""}`}>
      <figcaption class="muted">{of.hasSteps ? "A step" : "The time"} without communication, beside the median of {time(medianOwnNs)}.{canOpen && " Choose a rank to see why."}</figcaption>
      <div class="blocks" role="listbox" aria-label="Ranks by own time" aria-orientation="horizontal" ref={list} onKeyDown={move}>
        {blocks.map(({ label, places }) => (
          <div class="block" role="group" aria-label={label} key={label}>
            <span class="muted" aria-hidden>
              {label}
            </span>
            <div class="cells">
              {places.map((place) => {
                const [rank, own] = [ranks[place] ?? 0, ownNs[place] ?? 0];
                const host = hosts[hostOf[place] ?? 0] ?? "";
                const told = `rank ${rank}: ${time(own)}, ${aboveWords(own, medianOwnNs)}${host === "" ? "" : `, ${host}`}`;
                return (
                  <button
                    key={rank}
                    type="button"
                    role="option"
                    data-place={place}
                    aria-selected={rank === chosen}
                    aria-label={told}
                    title={told}
                    tabIndex={order[active] === place ? 0 : -1}
                    class={`level${levelOf(own, medianOwnNs, levels)}`}
                    aria-disabled={!opens(rank)} // `disabled` would take it from the keyboard, and the next ones with it
                    onFocus={() => setActive(order.indexOf(place))}
                    onClick={() => opens(rank) && choose(rank === chosen ? undefined : rank)}
                  >
                    {ranks.length <= NUMBERED ? rank : ""}
                  </button>
                );
              })}
            </div>
          </div>
        ))}
      </div>
      <Legend of={[["less", "level-1"], [`within ${levels[0] ?? 0} %`, "level0"], ...levels.map((least, at) => [`+${least} %`, `level${at + 1}`] as const)]} />
    </figure>
  );
}

/** Where a key leads to; undefined for no key of a list. */
function stepped(key: string, at: number, size: number): number | undefined {
  const by: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: ACROSS, ArrowUp: -ACROSS, Home: -size, End: size };
  const step = by[key];
  return step === undefined ? undefined : Math.max(0, Math.min(size - 1, at + step));
}

interface Block {
  readonly label: string;
  /** Places in `Distributed.ranks`. */
  readonly places: readonly number[];
}

const IN_A_BLOCK = 8;

/** Places of the ranks, the longest own time first. */
export function slowestFirst({ ownNs, ranks }: Pick<Distributed, "ownNs" | "ranks">): readonly number[] {
  return ranks.map((_, place) => place).sort((one, other) => (ownNs[other] ?? 0) - (ownNs[one] ?? 0) || one - other);
}

/** How many of `levels` (percent, the least first) an own time is above the median; -1 where it is below by more than the first. */
export function levelOf(ownNs: number, medianNs: number, levels: readonly number[]): number {
  const above = medianNs > 0 ? (100 * (ownNs - medianNs)) / medianNs : 0;
  return above < -(levels[0] ?? 0) ? -1 : levels.filter((least) => above >= least).length;
}

/** `+38 %` above the median; "" where there is none. */
export function aboveWords(ownNs: number, medianNs: number): string {
  if (medianNs <= 0) {
    return "";
  }
  const percent = Math.round((100 * (ownNs - medianNs)) / medianNs);
  return `${percent > 0 ? "+" : percent < 0 ? "−" : ""}${Math.abs(percent)} %`;
}

/** A block for each host; where there is one host or none is known, for each eight ranks. */
export function blocksOf({ hosts, hostOf, ranks }: Pick<Distributed, "hosts" | "hostOf" | "ranks">): readonly Block[] {
  if (hosts.length > 1) {
    const places = hosts.map((): number[] => []);
    hostOf.forEach((host, place) => places[host]?.push(place));
    return hosts.map((host, at) => ({ label: host === "" ? "host unknown" : host, places: places[at] ?? [] }));
  }
  const blocks: Block[] = [];
  for (let first = 0; first < ranks.length; first += IN_A_BLOCK) {
    const places = ranks.slice(first, first + IN_A_BLOCK).map((_, place) => first + place);
    const [from, to] = [ranks[first] ?? 0, ranks[first + places.length - 1] ?? 0];
    blocks.push({ label: from === to ? `${from}` : `${from}–${to}`, places });
  }
  return blocks;
}

/** By column, of each row: how far it is above the least, as a share of the largest. Where all are alike it is 0. */
export function heatOf({ columns, rows }: Table): ReadonlyMap<string, readonly number[]> {
  return new Map(
    columns.flatMap(({ key, kind }, at): (readonly [string, readonly number[]])[] => {
      if ((kind !== "time" && kind !== "count") || key === "steps") {
        return [];
      }
      const values = rows.map((row) => row[at]);
      const known = values.filter((value) => typeof value === "number");
      const [least, most] = [Math.min(...known), Math.max(...known)];
      return [[key, values.map((value) => (typeof value === "number" && most > 0 ? (value - least) / most : 0))]];
    }),
  );
}
