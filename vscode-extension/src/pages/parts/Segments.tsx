/** A choice of a few, all in sight. */

import type { JSX } from "preact";

interface Props<Value extends string> {
  readonly label: string;
  readonly options: readonly (readonly [Value, string])[];
  readonly value: Value;
  readonly choose: (value: Value) => void;
}

export function Segments<Value extends string>({ label, options, value, choose }: Props<Value>): JSX.Element {
  return (
    <span class="segments" role="group" aria-label={label}>
      {options.map(([one, words]) => (
        <button key={one} type="button" aria-pressed={one === value} onClick={() => choose(one)}>
          {words}
        </button>
      ))}
    </span>
  );
}
