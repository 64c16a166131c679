/** A late rank: by how much, why, and the line that made it late. */

import type { JSX } from "preact";
import type { LateRank } from "../contract";
import { Place } from "../parts/Place";
import { time } from "../words";

interface Props {
  readonly of: LateRank;
  /** Where the rank is shown beside the others, if it is. */
  readonly link?: string | undefined;
  /** Whether it stands in what is shown of the rank, which needs no name there. */
  readonly isWithin?: boolean;
}

export function Late({ of, link, isWithin = false }: Props): JSX.Element {
  return (
    <article class="finding warning">
      <header>
        <h3>{isWithin ? "It is late" : link === undefined ? `Rank ${of.rank}` : <a href={link}>Rank {of.rank}</a>}</h3>
        <span class="late">+{time(of.excessNs)}</span>
      </header>
      <p>{of.message}</p>
      {of.part !== "" && (
        <p class="muted">
          Of its step’s parts “{of.part}”{of.part === "other" && ", in which nothing is recorded,"} is longer by most: +{time(of.partNs)}.
        </p>
      )}
      {of.place !== "" && (
        <p>
          <Place of={of} />{" "}
          <span class="muted">{of.function}</span> takes it {time(of.lineNs)} more than the others. <code>{of.source}</code>
        </p>
      )}
      {(of.cause !== "" || of.figures.length > 0) && (
        <dl class="evidence">
          {of.cause !== "" && (
            <div>
              <dt>cause</dt>
              <dd>{of.cause}</dd>
            </div>
          )}
          {of.figures.map(({ label, value, typical }) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>
                {value} <span class="muted">(others {typical})</span>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </article>
  );
}
