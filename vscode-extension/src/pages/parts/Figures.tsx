/** Numbers with their names. */

import type { ComponentChildren, JSX } from "preact";
import type { Fact, Figure, Table } from "../contract";
import { words } from "../words";
import type { TableRow } from "./table/rows";

/** A name, what it stands for, and what it means. */
export type Term = readonly [label: string, value: ComponentChildren, help?: string | undefined];

export function Terms({ of, class: style }: { readonly of: readonly Term[]; readonly class: string }): JSX.Element {
  return (
    <dl class={style}>
      {of.map(([label, value, help]) => (
        <div key={label} title={help}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Figures({ of, class: style = "figures" }: { readonly of: readonly Figure[]; readonly class?: string }): JSX.Element {
  return <Terms class={style} of={of.map(({ label, value, kind, help }) => [label, words(value, kind), help])} />;
}

export function Facts({ of }: { readonly of: readonly Fact[] }): JSX.Element {
  return <Terms class="facts" of={of.map(({ label, value }) => [label, value])} />;
}

/** All numbers of a row, those of hidden columns, too. */
export function RowFacts({ of, row }: { readonly of: Table; readonly row: TableRow }): JSX.Element {
  const known = of.columns.flatMap(({ title, help, kind }, at): Term[] => {
    const value = row.cells[at] ?? null;
    return at === 0 || value === null || value === "" || value === 0 || kind === "place" ? [] : [[title, words(value, kind), help === "" ? undefined : help]];
  });
  return <Terms class="rowfacts" of={known} />;
}

interface LegendProps {
  /** Names, each with a class that has a colour, or with a colour as CSS has it. */
  readonly of: readonly (readonly [name: ComponentChildren, tone: string])[];
  readonly label?: string;
}

/** What colours mean. */
export function Legend({ of, label }: LegendProps): JSX.Element {
  return (
    <ul class="legend" aria-label={label}>
      {of.map(([name, tone], at) => {
        const isClass = /^[\w-]+$/.test(tone);
        return (
          <li key={at}>
            <span class={`swatch ${isClass ? tone : ""}`} style={isClass ? {} : { "--tone": tone }} />
            {name}
          </li>
        );
      })}
    </ul>
  );
}
