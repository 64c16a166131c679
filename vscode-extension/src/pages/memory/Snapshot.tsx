/** Torch's memory snapshot beside the trace: who held what, fragments, and what grows from step to step. */

import type { JSX } from "preact";
import { choiceOf, type Address } from "../app/address";
import { questions, type SnapshotPart } from "../contract";
import { Answer } from "../parts/Answered";
import { DataTable } from "../parts/DataTable";
import { Facts } from "../parts/Figures";
import { useAnswer } from "../source/useAnswer";

export function Snapshot({ address }: { readonly address: Address }): JSX.Element {
  const found = useAnswer(questions.memory_snapshot, choiceOf(address));
  return (
    <section>
      <h2>Torch’s memory snapshot</h2>
      <Answer of={found}>{(answer) => answer.devices.map((one) => <Device key={one.device} of={one} />)}</Answer>
    </section>
  );
}

function Device({ of }: { readonly of: SnapshotPart }): JSX.Element {
  const tables = [of.failed, of.live, of.growing].filter((one) => one !== null);
  return (
    <>
      <Facts of={of.facts} />
      {tables.map((one) => (
        <section key={one.id}>
          <h3>{one.title}</h3>
          <DataTable of={one} word={`${one.id}-${of.device}-`} />
        </section>
      ))}
    </>
  );
}
