/** A whole as one bar of its parts, with their names, sizes and shares below; and which colour a kind of time has on every page. */

import type { ComponentChildren, JSX } from "preact";
import type { Part } from "../contract";
import { duration, share } from "../words";
import "./chart.css";

/** A part of a whole that is shown as one bar. */
export interface StackPart {
  readonly name: string;
  readonly value: number;
  /** `tone0`, a class with a colour; without one that of its name. */
  readonly tone?: string;
  /** Of the whole; without one of the parts together. */
  readonly share?: number;
  readonly help?: string;
}

interface Props {
  readonly parts: readonly StackPart[];
  readonly words: (value: number) => string;
  /** What stands behind the name of a part; its size and its share without. */
  readonly numbers?: (words: string, share: string) => ComponentChildren;
  /** Parts that are no partition have no bar and no colours. */
  readonly isPartition?: boolean;
  readonly isSlim?: boolean;
}

export function StackBar({ parts, words, numbers = leading, isPartition = true, isSlim = false }: Props): JSX.Element {
  const whole = parts.reduce((sum, { value }) => sum + Math.max(value, 0), 0);
  const shown = parts.filter(({ value }) => value > 0).map((part) => ({ tone: toneOf(part.name), share: part.value / whole, ...part }));
  return (
    <div class={`stacked ${isSlim ? "slim" : ""}`}>
      {isPartition && (
        <div class="bar" role="img" aria-label={shown.map((part) => `${part.name} ${share(part.share)}`).join(", ")}>
          {shown.map((part) => (
            <span key={part.name} class={part.tone} style={{ flexGrow: part.share }} title={`${part.name}: ${words(part.value)}`} />
          ))}
        </div>
      )}
      <ul class="legend">
        {shown.map((part) => (
          <li key={part.name} title={part.help}>
            {isPartition && <span class={`swatch ${part.tone}`} />}
            {part.name} {numbers(words(part.value), share(part.share))}
          </li>
        ))}
      </ul>
    </div>
  );
}

function leading(first: string, second: string): JSX.Element {
  return (
    <>
      <strong>{first}</strong> <span class="muted">{second}</span>
    </>
  );
}

/** Times that are parts of another: what counts is the share. */
export function PartsBar({ parts, isPartition = true }: { readonly parts: readonly Part[]; readonly isPartition?: boolean }): JSX.Element {
  const stack = parts.map(({ name, timeNs, share: part }) => ({ name, value: timeNs, share: part }));
  return <StackBar parts={stack} words={duration} numbers={(time, part) => leading(part, time)} isPartition={isPartition} />;
}

const PHASES = ["data", "forward", "backward", "optimizer", "other"];

/** By the words of a name, the first that fits. The timeline's palette has the same (`timeline/palette.ts`). */
const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [/idle|^other( wait)?$|no line|nothing|everything else/, "tone7"],
  [/communicat|collective|logging/, "tone3"],
  [/memcpy|memset|cop(y|ies)|non-compute|framework|checkpoint/, "tone5"],
  [/host|cpu|python|operator|validation/, "tone0"],
  [/wait|blocked|asleep/, "tone6"],
  [/data/, "tone1"],
  [/runtime|launch|first step/, "tone4"],
  [/kernel|comput|device|arithmetic|bytes|memory|training steps/, "tone2"],
];

/** The class of a phase of training, or of any other kind of time. */
export function toneOf(name: string): string {
  const phase = PHASES.indexOf(name);
  if (phase >= 0) {
    return `phase${phase}`;
  }
  return MEANINGS.find(([words]) => words.test(name.toLowerCase()))?.[1] ?? "tone6";
}
