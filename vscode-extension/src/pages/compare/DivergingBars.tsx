/** Changes to both sides of nothing: slower to the right, faster to the left, each with its interval. */

import type { JSX } from "preact";
import { Place } from "../parts/Place";
import { signed } from "../words";
import type { Compared, Table } from "../contract";

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
      <span class="number">{signed(of.changeNs)}</span>
    </li>
  );
}

interface Change {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly changeNs: number;
  readonly lowNs: number | null;
  readonly highNs: number | null;
  readonly verdict: string;
}

/** The rows beyond noise, which stand first. */
export function withoutNoise({ rows: table, beyondNoise }: Compared): Table {
  return { ...table, rows: table.rows.slice(0, beyondNoise), places: table.places.slice(0, beyondNoise), leftOut: 0 };
}

/** The rows, the largest changes first. */
export function changesOf({ columns, rows, places, files }: Table): Change[] {
  const at = Object.fromEntries(columns.map(({ key }, place) => [key, place]));
  const numeric = (row: Table["rows"][number], key: string): number | null => {
    const value = row[at[key] ?? -1];
    return typeof value === "number" ? value : null;
  };
  return rows
    .map((row, place) => {
      const [file = -1, line = 0] = places[place] ?? [];
      return {
        name: String(row[0] ?? ""),
        file: files[file] ?? "",
        line,
        changeNs: numeric(row, "change_ns") ?? 0,
        lowNs: numeric(row, "low_ns"),
        highNs: numeric(row, "high_ns"),
        verdict: String(row[at["verdict"] ?? -1] ?? ""),
      };
    })
    .sort((one, other) => Math.abs(other.changeNs) - Math.abs(one.changeNs));
}

/** A scale with 0 in it: from a value to a place between 0 and 1. */
export function scaleOf(values: readonly number[]): (value: number) => number {
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  const span = most - least || 1;
  return (value) => Math.min(Math.max((value - least) / span, 0), 1);
}
