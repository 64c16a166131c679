/** All numbers of a row, those of hidden columns, too. */

import type { JSX } from "preact";
import type { Table } from "../contract";
import { words } from "../words";
import type { TableRow } from "./table/rows";

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
