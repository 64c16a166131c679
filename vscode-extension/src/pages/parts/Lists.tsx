/** Short lists in the panel about a row: times by name, by line, by cause. */

import type { ComponentChildren, JSX } from "preact";
import { linkTo, useAddress } from "../app/address";
import type { NamedTime, OwnerLine } from "../contract";
import { count, duration, share } from "../words";
import { Place } from "./Place";

interface Bar {
  readonly key: string;
  readonly label: ComponentChildren;
  readonly title?: string;
  readonly timeNs: number;
  readonly more?: string;
}

interface BarsProps {
  readonly title: string;
  readonly rows: readonly Bar[];
  readonly wholeNs?: number;
  readonly level?: "h2" | "h3";
}

/** Rows with a bar of their part of a whole; without one, of all rows together. */
export function TimeBars({ title, rows, wholeNs, level: Heading = "h3" }: BarsProps): JSX.Element | null {
  if (rows.length === 0) {
    return null;
  }
  const whole = wholeNs ?? rows.reduce((sum, { timeNs }) => sum + timeNs, 0);
  return (
    <section class="timebars">
      {title !== "" && <Heading>{title}</Heading>}
      <ul>
        {rows.map(({ key, label, title: tip, timeNs, more }) => (
          <li key={key} title={tip}>
            <span class="bar" style={{ width: `${whole > 0 ? Math.min((100 * timeNs) / whole, 100) : 0}%` }} aria-hidden />
            <span class="label">{label}</span>
            {more !== undefined && <span class="muted number">{more}</span>}
            <span class="number">{duration(timeNs)}</span>
            {whole > 0 && <span class="number muted">{share(timeNs / whole)}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}

interface NamedProps {
  readonly title: string;
  /** The page that has a row for each. */
  readonly page: string;
  readonly of: readonly NamedTime[];
  readonly wholeNs?: number;
}

export function NamedTimes({ title, page, of, ...whole }: NamedProps): JSX.Element | null {
  const address = useAddress();
  const rows = of.map(({ key, label, timeNs, calls }) => ({
    key,
    label: <a href={linkTo(address, page, { row: key })}>{label}</a>,
    title: label,
    timeNs,
    more: `${count(calls)}×`,
  }));
  return <TimeBars title={title} rows={rows} {...whole} />;
}

export function OwnerLines({ title, of }: { readonly title: string; readonly of: readonly OwnerLine[] }): JSX.Element | null {
  const rows = of.map(({ file, line, place, function: name, timeNs }) => ({
    key: `${file}:${line}`,
    label: <Place of={{ file, line, place }} />,
    title: name,
    timeNs,
  }));
  return <TimeBars title={title} rows={rows} />;
}
