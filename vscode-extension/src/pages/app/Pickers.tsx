/** What is chosen: the run, its stage, its rank, a step. A choice is a new address. */

import type { JSX } from "preact";
import { questions, type Header, type Run } from "../contract";
import { useAnswer } from "../source/useAnswer";
import { go, withWords, type Address } from "./address";

interface Props {
  readonly header: Header;
  readonly address: Address;
}

export function Pickers({ header, address }: Props): JSX.Element {
  const found = useAnswer(questions.runs, {}, true);
  const runs = found.state === "ready" ? found.answer.runs : [];
  const run = runs.find(({ id }) => id === header.run);
  const choose = (words: Readonly<Record<string, string>>): void => go(withWords(address, words));
  return (
    <div class="pickers">
      {runs.length > 1 ? (
        <Picker
          label="Run"
          value={header.run}
          options={runs.map((one) => [one.id, titleOf(one)])}
          choose={(id) => choose({ run: id, rank: "", stage: "", step: "", phase: "", module: "" })}
        />
      ) : (
        <strong class="title">{header.title}</strong>
      )}
      {run !== undefined && run.stages.length > 1 && (
        <Picker
          label="Stage"
          value={address.words["stage"] ?? run.stages[0] ?? ""}
          options={run.stages.map((stage) => [stage, stage === "" ? "(none)" : stage])}
          choose={(stage) => choose({ stage, step: "" })}
        />
      )}
      {run !== undefined && run.ranks.length > 1 && (
        <Picker
          label="Rank"
          value={address.words["rank"] ?? ""}
          options={[["", `all ${run.ranks.length} ranks`], ...run.ranks.map((rank): [string, string] => [String(rank), `rank ${rank}`])]}
          choose={(rank) => choose({ rank, step: "" })}
        />
      )}
      {header.steps.length > 1 && (
        <Picker
          label="Step"
          value={address.words["step"] ?? ""}
          options={[["", `all ${header.steps.length} steps`], ...header.steps.map((step): [string, string] => [String(step), `step ${step}`])]}
          choose={(step) => choose({ step })}
        />
      )}
    </div>
  );
}

function titleOf(run: Run): string {
  const when = new Date(run.recordedAt);
  const time = Number.isNaN(when.getTime()) ? "" : ` · ${when.toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}`;
  return `${run.title}${time}`;
}

interface PickerProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [string, string])[];
  readonly choose: (value: string) => void;
}

function Picker({ label, value, options, choose }: PickerProps): JSX.Element {
  return (
    <select aria-label={label} title={label} value={value} onChange={(event) => choose(event.currentTarget.value)}>
      {options.map(([id, words]) => (
        <option key={id} value={id}>
          {words}
        </option>
      ))}
    </select>
  );
}
