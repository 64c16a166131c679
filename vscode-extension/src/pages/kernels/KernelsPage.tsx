/** The kernels, copies, fills and collectives of the devices. */

import type { JSX } from "preact";
import { choiceOf, type PageProps } from "../app/address";
import { questions, type Choice, type Header, type KernelDetails, type SliceKind, type Table } from "../contract";
import { Answer, useAnswer } from "../source/answers";
import { DataTable } from "../parts/DataTable";
import { DurationsInTrace } from "../parts/Histogram";
import { NamedTimes, OwnerLines } from "../parts/Lists";
import { RowFacts } from "../parts/Figures";
import type { TableRow } from "../parts/table/rows";
import "../parts/parts.css";

/** What the timeline calls device work of each kind. */
const SLICES: Readonly<Record<KernelDetails["kind"], SliceKind>> = { kernel: "kernel", memcpy: "copy", memset: "copy", collective: "collective" };

export function KernelsPage({ address, header }: PageProps): JSX.Element {
  const choice = choiceOf(address);
  const found = useAnswer(questions.kernels, choice);
  return (
    <Answer of={found}>
      {({ table }) =>
        table.rows.length === 0 ? (
          <p class="muted">No device worked in this trace.</p>
        ) : (
          <DataTable of={table} fills details={(row) => <KernelPanel key={row.key} of={table} row={row} choice={choice} header={header} />} />
        )
      }
    </Answer>
  );
}

interface PanelProps {
  readonly of: Table;
  readonly row: TableRow;
  readonly choice: Choice;
  readonly header: Header;
}

function KernelPanel({ of, row, choice, header }: PanelProps): JSX.Element {
  const found = useAnswer(questions.kernel, { ...choice, key: row.key });
  const label = String(row.cells[0]);
  return (
    <>
      <h2>{label}</h2>
      <RowFacts of={of} row={row} />
      <Answer of={found}>
        {(details) => (
          <>
            <Details of={details} label={label} />
            <DurationsInTrace asked={{ ...choice, name: details.name, kind: SLICES[details.kind] }} header={header} />
          </>
        )}
      </Answer>
    </>
  );
}

function Details({ of, label }: { readonly of: KernelDetails; readonly label: string }): JSX.Element {
  return (
    <>
      {of.name !== label && <code class="own">{of.name}</code>}
      {of.operator !== null && <NamedTimes title="The operator that launches most of it" page="operators" of={[of.operator]} />}
      <OwnerLines title="Lines that launch it" of={of.lines} />
    </>
  );
}
