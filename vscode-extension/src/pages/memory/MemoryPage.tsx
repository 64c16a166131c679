/** Memory: each device's curve, what was live at the moment that the cursor is at, torch's snapshot beside the trace. */

import type { JSX } from "preact";
import { choiceOf, go, withWords, type Address, type PageProps } from "../app/address";
import { questions, type DeviceCurve, type FailedAllocation, type MemoryPage as Memory, type SnapshotPart } from "../contract";
import { Answer, useAnswer } from "../source/answers";
import { DataTable } from "../parts/DataTable";
import { Facts, Figures } from "../parts/Figures";
import { Segments } from "../parts/Controls";
import { StackBar } from "../parts/StackBar";
import { bytes } from "../words";
import { DeviceMemory, stackOf } from "./DeviceMemory";
import "./memory.css";

export function MemoryPage({ address }: PageProps): JSX.Element {
  const found = useAnswer(questions.memory, choiceOf(address));
  return <Answer of={found}>{(answer) => <Body of={answer} address={address} />}</Answer>;
}

function Body({ of, address }: { readonly of: Memory; readonly address: Address }): JSX.Element {
  const chosen = of.devices.find(({ device }) => device === address.words["device"]) ?? of.devices[0];
  if (chosen === undefined) {
    return (
      <>
        {of.failure !== null && <Failure of={of.failure} />}
        {of.hasSnapshot ? <Snapshot address={address} /> : <HowToRecord />}
      </>
    );
  }
  return (
    <>
      {of.failure !== null && <Failure of={of.failure} />}
      <Figures of={of.figures} />
      {!of.ownersKnown && <p class="note">This recording tells of allocations, and not what held them: all of it is “unknown”. DeepScope’s recorder tells parameters, gradients, optimizer state and activations apart.</p>}
      {of.devices.length > 1 && (
        <Segments label="Device" options={of.devices.map((one) => [one.device, titleOf(one)])} value={chosen.device} choose={(device) => go(withWords(address, { device, at: "" }))} />
      )}
      <DeviceMemory key={chosen.device} of={chosen} all={of} address={address} />
      <section>
        <h2>What lines allocate</h2>
        <DataTable of={of.lines} word="lines-" />
      </section>
      {of.hasSnapshot && <Snapshot address={address} />}
    </>
  );
}

function titleOf({ device, rank, peakBytes }: DeviceCurve): string {
  return `${device}${rank === null ? "" : `, rank ${rank}`} · ${bytes(peakBytes)}`;
}

function Failure({ of }: { readonly of: FailedAllocation }): JSX.Element {
  return (
    <section class="failure oom" role="alert">
      <h2>An allocation failed on {of.device}</h2>
      <p>{of.message}</p>
      <p>
        <strong>{bytes(of.sizeBytes)}</strong> were live then:
      </p>
      <StackBar parts={stackOf(of.held)} words={bytes} />
      <DataTable of={of.lines} word="failure-" />
    </section>
  );
}

function HowToRecord(): JSX.Element {
  return (
    <section class="empty">
      <p>No allocations were recorded in this trace. Record them, and this page shows each device’s memory over time, its peak, and what was live at any moment, by line and by what held it:</p>
      <ul>
        <li>
          <code>deepscope run --topics default,memory train.py</code>
        </li>
        <li>
          <code>deepscope.profile(profile_memory=True)</code> around the training loop
        </li>
        <li>
          <code>{'Trainer(profiler=DeepProfiler(profile_memory=True))'}</code> in Lightning
        </li>
      </ul>
    </section>
  );
}

/** Who held what, fragments, and what grows from step to step. */
function Snapshot({ address }: { readonly address: Address }): JSX.Element {
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
