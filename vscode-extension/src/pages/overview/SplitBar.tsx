/** A time and its parts: one bar with its legend, or a bar for each part where they are no partition. */

import type { JSX } from "preact";
import type { Split } from "../contract";
import { duration, share } from "../words";

export function SplitBar({ split }: { readonly split: Split }): JSX.Element {
  const parts = split.parts.filter(({ timeNs }) => timeNs > 0);
  const title = split.device === "" ? split.title : `${split.title}: ${split.device}`;
  return (
    <figure class="split">
      <figcaption>
        <h2>{title}</h2>
        <span class="muted">{split.help}</span>
      </figcaption>
      {split.isPartition && (
        <div class="bar" role="img" aria-label={parts.map((part) => `${part.name} ${share(part.share)}`).join(", ")}>
          {parts.map((part) => (
            <span key={part.name} class={`tone${split.parts.indexOf(part)}`} style={{ flexGrow: part.share }} title={`${part.name}: ${duration(part.timeNs)}`} />
          ))}
        </div>
      )}
      <ul class="legend">
        {parts.map((part) => (
          <li key={part.name}>
            {split.isPartition && <span class={`swatch tone${split.parts.indexOf(part)}`} />}
            {part.name} <strong>{share(part.share)}</strong> <span class="muted">{duration(part.timeNs)}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}
