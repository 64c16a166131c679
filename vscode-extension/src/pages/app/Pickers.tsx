/** What is chosen: the run (by a search where they are many), its stage, its rank, a step. A choice is a new address. */

import type { JSX } from "preact";
import type { Header, Run } from "../contract";
import { useOffers } from "../source/answers";
import { choiceOf, go, withWords, type Address } from "./address";
import { baselinesOf, foundRuns, linkToRun, timeOf, titleOf } from "./runs";
import { useState } from "preact/hooks";
import { Menu, Search, Select } from "../parts/Controls";

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
        <Select
          label="Stage"
          value={address.words["stage"] ?? run.stages[0] ?? ""}
          options={run.stages.map((stage) => [stage, stage === "" ? "(none)" : stage])}
          choose={(stage) => choose({ stage, step: "" })}
        />
      )}
      {run !== undefined && run.windows.length > 1 && (
        <Select
          label="Window"
          value={window ?? String(run.windows.at(-1))}
          options={run.windows.map((number) => [String(number), `window ${number}`])}
          choose={(number) => choose({ run: `${base}~${number}`, step: "" })}
        />
      )}
      {run !== undefined && run.ranks.length > 1 && (
        <Select
          label="Rank"
          value={address.words["rank"] ?? ""}
          options={[["", `all ${run.ranks.length} ranks`], ...run.ranks.map((rank): [string, string] => [String(rank), `rank ${rank}`])]}
          choose={(rank) => choose({ rank, step: "" })}
        />
      )}
      {header !== undefined && header.step !== null && steps.length === 0 && <span class="muted">step {header.step}</span>}
      {numbers.length > 1 && steps.length > 0 && (
        <Select
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
      <Select
        label="Baseline"
        value={address.words["baseline"] ?? ""}
        options={[["", address.page === "compare" ? "the run before" : "nothing"], ...options]}
        choose={(baseline) => go(withWords(address, { baseline }))}
      />
    </label>
  );
}

/** From so many runs on there is a search. */
const SEARCHED = 6;
/** Runs that are listed; a search finds the others. */
const LISTED = 200;

interface RunMenuProps {
  readonly runs: readonly Run[];
  /** `Run.id`; "" for none. */
  readonly chosen: string;
  readonly address: Address;
}

function RunMenu({ runs, chosen, address }: RunMenuProps): JSX.Element {
  const run = runs.find(({ id }) => id === chosen);
  const label = <span class="title">{run === undefined ? `${runs.length} runs` : titleOf(run)}</span>;
  return (
    <div class="runs">
      <Menu label={label} title="Run">
        {(close) => <Choices runs={runs} chosen={chosen} address={address} close={close} />}
      </Menu>
    </div>
  );
}

function Choices({ runs, chosen, address, close }: RunMenuProps & { readonly close: () => void }): JSX.Element {
  const [search, setSearch] = useState("");
  const found = foundRuns(runs, search);
  const shown = found.slice(0, LISTED);
  return (
    <>
      {runs.length >= SEARCHED && (
        <Search label="Find a run" placeholder={`Find among ${runs.length} runs`} value={search} look={setSearch} isFocused />
      )}
      <ul class="runlist">
        {shown.map((run) => (
          <li key={run.id}>
            <a href={linkToRun(address, run)} onClick={close} {...(run.id === chosen ? { "aria-current": "true" as const } : {})} title={run.folder}>
              <span>{run.name === "" ? run.title : run.name}</span>
              <span class="muted">{[run.name === "" ? "" : run.title, timeOf(run), run.traces > 1 ? `${run.traces} traces` : ""].filter((part) => part !== "").join(" · ")}</span>
              {run.problem !== "" && <span class="problem">cannot be shown: {run.problem}</span>}
            </a>
          </li>
        ))}
      </ul>
      {shown.length < found.length && <p class="muted">{found.length - shown.length} more: search for them</p>}
      {found.length === 0 && <p class="muted">No run has these words.</p>}
    </>
  );
}
