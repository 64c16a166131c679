/** The modules as a tree; layers that are alike as one row where that is wanted. */

import type { JSX } from "preact";
import { choiceOf, go, linkTo, withWords, type Address, type PageProps } from "../app/address";
import { questions, type Modules } from "../contract";
import { Answer, useAnswer, useOffers } from "../source/answers";
import { DataTable } from "../parts/DataTable";
import { RowFacts } from "../parts/Figures";
import { Segments } from "../parts/Controls";
import type { TableRow } from "../parts/table/rows";
import "../parts/parts.css";

export function ModulesPage({ address }: PageProps): JSX.Element {
  const folded = address.words["alike"] !== "apart";
  const found = useAnswer(questions.modules, { ...choiceOf(address), folded });
  return (
    <Answer of={found}>
      {(answer) => {
        const tools = answer.canFold && (
          <Segments
            label="Layers that are alike"
            options={[
              ["", "Alike layers as one"],
              ["apart", "Each by itself"],
            ]}
            value={folded ? "" : "apart"}
            choose={(alike) => go(withWords(address, { alike, row: "" }))}
          />
        );
        return <DataTable of={answer.table} fills tools={tools} openDepth={3} details={(row) => <ModulePanel of={answer} row={row} address={address} />} />;
      }}
    </Answer>
  );
}

function ModulePanel({ of, row, address }: { readonly of: Modules; readonly row: TableRow; readonly address: Address }): JSX.Element {
  const path = of.paths[row.index] ?? "";
  const offers = useOffers();
  return (
    <>
      <h2>{row.cells[0]}</h2>
      {path !== row.cells[0] && <code class="own">{path}</code>}
      <RowFacts of={of.table} row={row} />
      {path !== "" && offers({ ...choiceOf(address), module: path }) && (
        <p>
          <a href={linkTo(address, "overview", { module: path })}>Show only what runs in it</a>
        </p>
      )}
    </>
  );
}
