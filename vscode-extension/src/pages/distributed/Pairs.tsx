/** Point-to-point messages: of a few ranks a matrix, and the pairs as a table. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { PairMatrix, Table } from "../contract";
import { DataTable } from "../parts/DataTable";
import { Segments } from "../parts/Controls";
import { bytes, time } from "../words";

/** Of so many ranks cells have their numbers in them. */
const WORDED = 12;

export function Pairs({ matrix, table }: { readonly matrix: PairMatrix | null; readonly table: Table }): JSX.Element {
  const [by, setBy] = useState<"bytes" | "time">("bytes");
  return (
    <section>
      <header class="row">
        <h2>Point to point</h2>
        {matrix !== null && (
          <Segments
            label="What the matrix shows"
            options={[
              ["bytes", "Bytes"],
              ["time", "Time"],
            ]}
            value={by}
            choose={setBy}
          />
        )}
      </header>
      {matrix !== null && <Matrix of={matrix} by={by} />}
      <DataTable of={table} word="pairs-" />
    </section>
  );
}

function Matrix({ of, by }: { readonly of: PairMatrix; readonly by: "bytes" | "time" }): JSX.Element {
  const values = by === "bytes" ? of.bytes : of.timesNs;
  const words = by === "bytes" ? bytes : time;
  const most = Math.max(1, ...values.flat());
  return (
    <div class="pairmatrix">
      <table>
        <caption class="muted">From the rank at the left to the rank above.</caption>
        <thead>
          <tr>
            <td />
            {of.ranks.map((rank) => (
              <th key={rank} scope="col">
                {rank}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {of.ranks.map((source, row) => (
            <tr key={source}>
              <th scope="row">{source}</th>
              {of.ranks.map((target, column) => {
                const value = values[row]?.[column] ?? 0;
                const told = value > 0 ? words(value) : "";
                return (
                  <td key={target} class={value > 0 ? "heat" : ""} style={value > 0 ? { "--share": (value / most).toFixed(3) } : {}} title={told === "" ? undefined : `rank ${source} to rank ${target}: ${told}`}>
                    {of.ranks.length <= WORDED ? told : <span class="hidden">{told}</span>}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
