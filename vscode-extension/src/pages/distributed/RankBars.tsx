/** The step of each rank as a bar of its parts, all to one scale. */

import type { JSX } from "preact";
import { linkTo, type Address } from "../app/address";
import type { RankRow } from "../contract";
import { share, time } from "../words";

interface Props {
  readonly ranks: readonly RankRow[];
  readonly partNames: readonly string[];
  readonly address: Address;
}

export function RankBars({ ranks, partNames, address }: Props): JSX.Element {
  const wholes = ranks.map(({ parts }) => parts.reduce((sum, part) => sum + part, 0));
  const longest = Math.max(...wholes, 1);
  const used = partNames.map((_, part) => ranks.some(({ parts }) => (parts[part] ?? 0) > 0));
  return (
    <figure class="rankbars">
      <ul class="legend">
        {partNames.map((name, part) =>
          used[part] === true ? (
            <li key={name}>
              <span class={`swatch tone${part}`} />
              {name}
            </li>
          ) : null,
        )}
      </ul>
      <ol class={ranks.length > 24 ? "many" : ""}>
        {ranks.map(({ rank, parts }, place) => {
          const whole = wholes[place] ?? 0;
          const words = parts.flatMap((part, at) => (part > 0 ? [`${partNames[at] ?? ""} ${time(part)} (${share(part / whole)})`] : []));
          return (
            <li key={rank}>
              <a href={linkTo(address, "overview", { rank: String(rank) })}>rank {rank}</a>
              <div class="bar" role="img" aria-label={`rank ${rank}: ${time(whole)}: ${words.join(", ")}`} title={words.join("\n")}>
                {parts.map((part, at) => (part > 0 ? <span key={partNames[at]} class={`tone${at}`} style={{ width: `${(100 * part) / longest}%` }} /> : null))}
              </div>
              <span class="number">{time(whole)}</span>
            </li>
          );
        })}
      </ol>
    </figure>
  );
}
