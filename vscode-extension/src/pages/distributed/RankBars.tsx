/** The step of each rank as a bar of its parts, all to one scale. */

import type { JSX } from "preact";
import type { Distributed } from "../contract";
import { Legend } from "../parts/Figures";
import { toneOf } from "../parts/StackBar";
import { count, share, time } from "../words";

/** Of more ranks the first ones have a bar; the table has them all. */
const MOST = 64;

interface Props {
  readonly of: Distributed;
  /** The order of the ranks. */
  readonly places: readonly number[];
  /** Where a rank is shown beside the others, if it is. */
  readonly linkOf: (rank: number) => string | undefined;
}

export function RankBars({ of, places, linkOf }: Props): JSX.Element {
  const { partNames } = of;
  const shown = places.slice(0, MOST);
  const longest = Math.max(...of.parts.map((parts) => sum(parts)), 1);
  const used = partNames.map((_, part) => of.parts.some((parts) => (parts[part] ?? 0) > 0));
  return (
    <figure class="rankbars">
      <Legend of={partNames.flatMap((name, part) => (used[part] === true ? [[name, toneOf(name)] as const] : []))} />
      <ol class={shown.length > 24 ? "many" : ""}>
        {shown.map((place) => {
          const [rank, parts] = [of.ranks[place] ?? 0, of.parts[place] ?? []];
          const whole = sum(parts);
          const link = linkOf(rank);
          const words = parts.flatMap((part, at) => (part > 0 ? [`${partNames[at] ?? ""} ${time(part)} (${share(part / whole)})`] : []));
          return (
            <li key={rank}>
              {link === undefined ? <span>rank {rank}</span> : <a href={link}>rank {rank}</a>}
              <div class="bar" role="img" aria-label={`rank ${rank}: ${time(whole)}: ${words.join(", ")}`} title={words.join("\n")}>
                {parts.map((part, at) => (part > 0 ? <span key={partNames[at]} class={toneOf(partNames[at] ?? "")} style={{ width: `${(100 * part) / longest}%` }} /> : null))}
              </div>
              <span class="number">{time(whole)}</span>
            </li>
          );
        })}
      </ol>
      {places.length > MOST && <p class="muted">and {count(places.length - MOST)} more ranks{of.table.leftOut === 0 && ", which the table below has"}.</p>}
    </figure>
  );
}

function sum(parts: readonly number[]): number {
  return parts.reduce((whole, part) => whole + part, 0);
}
