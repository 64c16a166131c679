/** The run that is shown, and the others to choose from: by a search where they are many. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Run } from "../contract";
import { Menu } from "../parts/table/Menu";
import type { Address } from "./address";
import { foundRuns, linkToRun, timeOf, titleOf } from "./baselines";

/** From so many runs on there is a search. */
const SEARCHED = 6;
/** Runs that are listed; a search finds the others. */
const LISTED = 200;

interface Props {
  readonly runs: readonly Run[];
  /** `Run.id`; "" for none. */
  readonly chosen: string;
  readonly address: Address;
}

export function RunMenu({ runs, chosen, address }: Props): JSX.Element {
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

function Choices({ runs, chosen, address, close }: Props & { readonly close: () => void }): JSX.Element {
  const [search, setSearch] = useState("");
  const found = foundRuns(runs, search);
  const shown = found.slice(0, LISTED);
  return (
    <>
      {runs.length >= SEARCHED && (
        <input type="search" class="search" aria-label="Find a run" placeholder={`Find among ${runs.length} runs`} value={search} autoFocus onInput={(event) => setSearch(event.currentTarget.value)} />
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
