/** A whole as one bar of its parts, with their names, sizes and shares below. */

import type { JSX } from "preact";
import { share } from "../words";
import "./chart.css";

/** A part of a whole that is shown as one bar. */
export interface StackPart {
  readonly name: string;
  readonly value: number;
  /** `tone0`, a class with a colour. */
  readonly tone: string;
}

interface Props {
  readonly parts: readonly StackPart[];
  readonly words: (value: number) => string;
}

export function StackBar({ parts, words }: Props): JSX.Element {
  const shown = parts.filter(({ value }) => value > 0);
  const whole = shown.reduce((sum, { value }) => sum + value, 0);
  return (
    <div class="stacked">
      <div class="stackbar-wide" role="img" aria-label={shown.map(({ name, value }) => `${name} ${share(value / whole)}`).join(", ")}>
        {shown.map(({ name, value, tone }) => (
          <span key={name} class={tone} style={{ flexGrow: value / whole }} title={`${name}: ${words(value)}`} />
        ))}
      </div>
      <ul class="legend">
        {shown.map(({ name, value, tone }) => (
          <li key={name}>
            <span class={`swatch ${tone}`} />
            {name} <strong>{words(value)}</strong> <span class="muted">{share(value / whole)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
