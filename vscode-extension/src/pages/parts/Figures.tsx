/** Numbers with their names. */

import type { JSX } from "preact";
import type { Fact, Figure, Table } from "../contract";
import { words } from "../words";
import type { TableRow } from "./table/rows";

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

export function RowFacts({ of, row }: { readonly of: Table; readonly row: TableRow }): JSX.Element {
  return (
    <dl class="rowfacts">
      {of.columns.map((column, at) => {
        const value = row.cells[at] ?? null;
        return at === 0 || value === null || value === "" || value === 0 || column.kind === "place" ? null : (
          <div key={column.key} title={column.help === "" ? undefined : column.help}>
            <dt>{column.title}</dt>
            <dd>{words(value, column.kind)}</dd>
          </div>
        );
      })}
    </dl>
  );
}
