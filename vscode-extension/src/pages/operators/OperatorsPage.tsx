/** The operators, by name, shapes, stacks or kind, and one in detail: what holds it back, its kernels, lines, shapes and stacks. */

import type { JSX } from "preact";
import { choiceOf, go, withWords, type PageProps } from "../app/address";
import { questions, type Choice, type Grouping, type Header, type OperatorAsked, type OperatorDetails, type Table } from "../contract";
import { Answer, useAnswer, useAsked, useHas, useSource, WAITING } from "../source/answers";
import { DataTable } from "../parts/DataTable";
import { Segments } from "../parts/Controls";
import { useState } from "preact/hooks";
import { DurationsInTrace } from "../parts/Histogram";
import { NamedTimes, OwnerLines, TimeBars } from "../parts/Lists";
import { Place } from "../parts/Place";
import { RowFacts } from "../parts/Figures";
import type { TableRow } from "../parts/table/rows";
import { count, duration } from "../words";
import "../parts/parts.css";

const GROUPINGS: readonly (readonly [Grouping, string])[] = [
  ["name", "Name"],
  ["shapes", "Shapes"],
  ["stacks", "Stacks"],
  ["type", "Kind"],
];

/** What is said where a trace does not tell them apart. */
const LACKING: readonly (readonly [Grouping, string, string])[] = [
  ["shapes", "in_shapes", "The trace has no shapes: they are recorded with record_shapes=True."],
  ["stacks", "stack", "The trace has no lines of code that led to operators."],
];

export function OperatorsPage({ address, header }: PageProps): JSX.Element {
  const by = GROUPINGS.find(([one]) => one === address.words["by"])?.[0] ?? "name";
  const found = useAnswer(questions.operators, { ...choiceOf(address), by });
  const has = useHas();
  const groupings = GROUPINGS.filter(([one]) => has(questions.operators, { ...choiceOf(address), by: one }));
  const tools = groupings.length > 1 && (
    <Segments
      label="A row for each"
      options={groupings}
      value={by}
      choose={(next) => go(withWords(address, { by: next === "name" ? "" : next, sort: "", where: "", row: "" }))}
    />
  );
  return (
    <Answer of={found}>
      {({ table }) => (
        <>
          {LACKING.map(([grouping, column, words]) => by === grouping && !table.columns.some(({ key }) => key === column) && <p class="note">{words}</p>)}
          <DataTable of={table} fills tools={tools} details={(row) => <OperatorPanel key={row.key} of={table} row={row} by={by} choice={choiceOf(address)} header={header} />} />
        </>
      )}
    </Answer>
  );
}

interface Props {
  readonly of: Table;
  readonly row: TableRow;
  readonly by: Grouping;
  readonly choice: Choice;
  readonly header: Header;
}

function OperatorPanel({ of, row, by, choice, header }: Props): JSX.Element {
  const asked = { ...choice, by, key: row.key };
  const found = useAnswer(questions.operator, asked);
  return (
    <>
      <h2>{row.cells[0]}</h2>
      <RowFacts of={of} row={row} />
      <Answer of={found}>{(details) => <Details of={details} label={String(row.cells[0])} asked={asked} choice={choice} header={header} />}</Answer>
    </>
  );
}

interface DetailsProps {
  readonly of: OperatorDetails;
  readonly label: string;
  readonly asked: OperatorAsked;
  readonly choice: Choice;
  readonly header: Header;
}

function Details({ of, label, asked, choice, header }: DetailsProps): JSX.Element {
  const { isServed } = useSource();
  return (
    <>
      {of.name !== label && <code class="own">{of.name}</code>}
      {of.why !== "" && (
        <section>
          <h3>Why</h3>
          <p>{of.why}</p>
        </section>
      )}
      {of.causes.length > 1 && <TimeBars title="Its time by cause" rows={of.causes.map(({ name, timeNs }) => ({ key: name, label: name, timeNs }))} />}
      {of.shapes !== "" && (
        <section>
          <h3>Shapes</h3>
          <p>
            <code>{of.shapes}</code>
            {of.outShapes !== "" && <code> → {of.outShapes}</code>}
          </p>
        </section>
      )}
      {of.stack.length > 0 && (
        <section>
          <h3>Called from</h3>
          <ol class="stackplaces">
            {of.stack.map(({ file, line, place, function: name }, at) => (
              <li key={at}>
                <Place of={{ file, line, place }} />
                <span class="muted">{name}</span>
              </li>
            ))}
          </ol>
        </section>
      )}
      <OwnerLines title="Lines that run it, with its backward pass" of={of.lines} />
      <NamedTimes title="Kernels below it, with its backward pass" page="kernels" of={of.kernels} />
      <NamedTimes title="Operators of this kind" page="operators" of={of.operators} />
      {isServed && asked.by === "name" && <DurationsInTrace asked={{ ...choice, name: of.name, kind: "operator" }} header={header} />}
      {isServed && asked.by === "name" && (
        <>
          <Variants title="Its shapes" asked={{ ...asked, by: "shapes" }} column="in_shapes" />
          <Variants title="Its stacks" asked={{ ...asked, by: "stacks" }} column="stack" />
        </>
      )}
    </>
  );
}

/** An operator by shapes or stacks: asked for when it is opened, since the trace may have to be read for it. */
function Variants({ title, asked, column }: { readonly title: string; readonly asked: OperatorAsked; readonly column: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const found = useAsked(questions.operator_variants, isOpen ? asked : undefined);
  return (
    <details class="variants" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && <Answer of={found ?? WAITING}>{({ table }) => <Opened of={table} column={column} />}</Answer>}
    </details>
  );
}

function Opened({ of: table, column }: { readonly of: Table; readonly column: string }): JSX.Element {
  const at = (key: string): number => table.columns.findIndex((one) => one.key === key);
  const [words, time, calls] = [at(column), at("self_device_ns"), at("calls")];
  if (words < 0) {
    return <p class="muted">The trace has no shapes or stacks.</p>;
  }
  const rows = table.rows.slice(0, 40).map((row, number) => ({
    key: String(number),
    label: String(row[words] ?? "") === "" ? "(not recorded)" : String(row[words]),
    title: String(row[words] ?? ""),
    timeNs: Number(row[time] ?? 0),
    more: `${count(Number(row[calls] ?? 0))}×`,
  }));
  const rest = table.rows.slice(40);
  return (
    <>
      <TimeBars title="" rows={rows} />
      {rest.length > 0 && (
        <p class="muted">
          and {count(rest.length)} more with {duration(rest.reduce((sum, row) => sum + Number(row[time] ?? 0), 0))}
        </p>
      )}
    </>
  );
}
