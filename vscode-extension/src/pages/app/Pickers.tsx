/** What is chosen: the run, its stage, its rank, a step. A choice is a new address. */

import type { JSX } from "preact";
import type { Header, Run } from "../contract";
import { useOffers } from "../source/useAnswer";
import { choiceOf, go, withWords, type Address } from "./address";
import { baselinesOf } from "./baselines";
import { RunMenu } from "./RunMenu";

interface Props {
  /** Of what is shown; undefined while it is read, and where it cannot be shown. */
  readonly header: Header | undefined;
  readonly address: Address;
  readonly runs: readonly Run[];
}

export function Pickers({ header, address, runs }: Props): JSX.Element {
  const offers = useOffers();
  const chosen = choiceOf(address);
  const numbers = header?.steps ?? [];
  const steps = numbers.filter((step) => offers({ ...chosen, step }));
  const [base = "", window] = (header?.run ?? chosen.run ?? "").split("~");
  const run = runs.find(({ id }) => id === base);
  const choose = (words: Readonly<Record<string, string>>): void => go(withWords(address, words));
  return (
    <div class="pickers">
      {runs.length > 1 ? <RunMenu runs={runs} chosen={base} address={address} /> : <strong class="title">{header?.title ?? run?.title}</strong>}
      {run !== undefined && run.stages.length > 1 && (
        <Picker
          label="Stage"
          value={address.words["stage"] ?? run.stages[0] ?? ""}
          options={run.stages.map((stage) => [stage, stage === "" ? "(none)" : stage])}
          choose={(stage) => choose({ stage, step: "" })}
        />
      )}
      {run !== undefined && run.windows.length > 1 && (
        <Picker
          label="Window"
          value={window ?? String(run.windows.at(-1))}
          options={run.windows.map((number) => [String(number), `window ${number}`])}
          choose={(number) => choose({ run: `${base}~${number}`, step: "" })}
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
      {header !== undefined && header.step !== null && steps.length === 0 && <span class="muted">step {header.step}</span>}
      {numbers.length > 1 && steps.length > 0 && (
        <Picker
          label="Step"
          value={address.words["step"] ?? ""}
          options={[["", `all ${numbers.length} steps`], ...steps.map((step): [string, string] => [String(step), `step ${step}`])]}
          choose={(step) => choose({ step })}
        />
      )}
      {header !== undefined && BESIDE.has(address.page) && <Baseline header={header} address={address} runs={runs} />}
    </div>
  );
}

/** Pages that show a run beside another one, the baseline. */
const BESIDE = new Set(["compare", "flame"]);

interface BaselineProps {
  readonly header: Header;
  readonly address: Address;
  readonly runs: readonly Run[];
}

/** The run that this one is compared with; of a run with several windows each of them. */
function Baseline({ header, address, runs }: BaselineProps): JSX.Element | null {
  const options = baselinesOf(runs, header.run);
  if (options.length === 0) {
    return null;
  }
  return (
    <label class="beside">
      <span class="muted">compared with</span>
      <Picker
        label="Baseline"
        value={address.words["baseline"] ?? ""}
        options={[["", address.page === "compare" ? "the run before" : "nothing"], ...options]}
        choose={(baseline) => go(withWords(address, { baseline }))}
      />
    </label>
  );
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
