/** The operators, by name, shapes, stacks or kind. */

import type { JSX } from "preact";
import { choiceOf, go, withWords, type PageProps } from "../app/address";
import { questions, type Grouping } from "../contract";
import { Answer } from "../parts/Answered";
import { DataTable } from "../parts/DataTable";
import { Segments } from "../parts/Segments";
import { useAnswer, useHas } from "../source/useAnswer";
import { OperatorPanel } from "./OperatorPanel";

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
