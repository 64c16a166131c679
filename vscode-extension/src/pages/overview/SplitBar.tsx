/** A time and its parts: one bar with its legend, or a bar for each part where they are no partition. */

import type { JSX } from "preact";
import type { Part, Split } from "../contract";
import { toneOf } from "../parts/tones";
import { duration, share } from "../words";

export function SplitBar({ split }: { readonly split: Split }): JSX.Element {
  const title = split.device === "" ? split.title : `${split.title}: ${split.device}`;
  return (
    <figure class="split">
      <figcaption>
        <h2>{title}</h2>
        <span class="muted">{split.help}</span>
      </figcaption>
      <PartsBar parts={split.parts} isPartition={split.isPartition} />
    </figure>
  );
}

interface Props {
  readonly parts: readonly Part[];
  readonly isPartition?: boolean;
}

export function PartsBar({ parts, isPartition = true }: Props): JSX.Element {
  const tone = (part: Part): string => toneOf(part.name);
  const shown = parts.filter(({ timeNs }) => timeNs > 0);
  return (
    <div class="split">
      {isPartition && (
        <div class="bar" role="img" aria-label={shown.map((part) => `${part.name} ${share(part.share)}`).join(", ")}>
          {shown.map((part) => (
            <span key={part.name} class={tone(part)} style={{ flexGrow: part.share }} title={`${part.name}: ${duration(part.timeNs)}`} />
          ))}
        </div>
      )}
      <ul class="legend">
        {shown.map((part) => (
          <li key={part.name}>
            {isPartition && <span class={`swatch ${tone(part)}`} />}
            {part.name} <strong>{share(part.share)}</strong> <span class="muted">{duration(part.timeNs)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
