/** Numbers with their names. */

import type { JSX } from "preact";
import type { Fact, Figure } from "../contract";
import { words } from "../words";

export function Figures({ of, class: style = "figures" }: { readonly of: readonly Figure[]; readonly class?: string }): JSX.Element {
  return (
    <dl class={style}>
      {of.map(({ label, value, kind, help }) => (
        <div key={label} title={help}>
          <dt>{label}</dt>
          <dd>{words(value, kind)}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Facts({ of }: { readonly of: readonly Fact[] }): JSX.Element {
  return (
    <dl class="facts">
      {of.map(({ label, value }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
