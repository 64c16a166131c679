/** Changes to both sides of nothing: slower to the right, faster to the left, each with its interval. */

import type { JSX } from "preact";
import { Place } from "../parts/Place";
import { time } from "../words";
import { scaleOf, type Change } from "./changes";

interface Props {
  readonly changes: readonly Change[];
  readonly more: number;
}

/** Intervals may be much longer than the changes; they are cut where they would flatten them. */
const ROOM = 2.2;

export function DivergingBars({ changes, more }: Props): JSX.Element {
  const most = ROOM * Math.max(...changes.map(({ changeNs }) => Math.abs(changeNs)), 1);
  const within = (value: number): number => Math.min(Math.max(value, -most), most);
  const scale = scaleOf(changes.flatMap(({ changeNs, lowNs, highNs }) => [changeNs, within(lowNs ?? 0), within(highNs ?? 0)]));
  return (
    <figure class="diverging" aria-label="The largest changes">
      <ol>
        {changes.map((one) => (
          <Row key={`${one.name} ${one.line} ${one.changeNs}`} of={one} scale={scale} within={within} />
        ))}
      </ol>
      <figcaption class="muted">
        <span>
          <span class="swatch faster" /> faster
        </span>
        <span>
          <span class="swatch slower" /> slower, in a step
        </span>
        {more > 0 && <span>{more} more below</span>}
      </figcaption>
    </figure>
  );
}

interface RowProps {
  readonly of: Change;
  readonly scale: (value: number) => number;
  readonly within: (value: number) => number;
}

function Row({ of, scale, within }: RowProps): JSX.Element {
  const [zero, end] = [scale(0), scale(of.changeNs)];
  const isNoise = of.verdict === "within noise" || of.verdict === "unknown";
  const tone = isNoise ? "noise" : of.changeNs > 0 ? "slower" : "faster";
  const interval = of.lowNs === null || of.highNs === null ? undefined : [scale(within(of.lowNs)), scale(within(of.highNs))];
  return (
    <li class={tone}>
      <span class="name" title={of.name}>
        <Place of={of} words={of.name} />
      </span>
      <span class="room" aria-hidden="true">
        <span class="fill" style={{ left: `${100 * Math.min(zero, end)}%`, width: `${100 * Math.abs(end - zero)}%` }} />
        {interval !== undefined && <span class="whisker" style={{ left: `${100 * (interval[0] ?? 0)}%`, width: `${100 * ((interval[1] ?? 0) - (interval[0] ?? 0))}%` }} />}
        <span class="zero" style={{ left: `${100 * zero}%` }} />
      </span>
      <span class="number">
        {of.changeNs > 0 ? "+" : ""}
        {time(of.changeNs)}
      </span>
    </li>
  );
}
