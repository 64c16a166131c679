/** Ranks side by side: which one is late and by which line, what each one's step is made of, what collectives cost. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { choiceOf, go, withWords, type Address, type PageProps } from "../app/address";
import { questions, type Choice, type Distributed } from "../contract";
import { Answer, useAnswer, useHas } from "../source/answers";
import { DataTable, TableSection } from "../parts/DataTable";
import { Figures } from "../parts/Figures";
import { Segments } from "../parts/Controls";
import { count, time } from "../words";
import { HeatMap, heatOf, slowestFirst } from "./HeatMap";
import { Late, RankDetails } from "./RankDetails";
import { Pairs } from "./Pairs";
import { RankBars } from "./RankBars";
import "./distributed.css";

export function DistributedPage({ address }: PageProps): JSX.Element {
  const found = useAnswer(questions.distributed, allRanks(address));
  return <Answer of={found}>{(answer) => <Body of={answer} address={address} />}</Answer>;
}

function allRanks(address: Address): Choice {
  return choiceOf(address, ["run", "stage", "step", "phase", "module"]);
}

function Body({ of, address }: { readonly of: Distributed; readonly address: Address }): JSX.Element {
  const has = useHas();
  const choice = allRanks(address);
  const chosen = of.ranks.find((rank) => String(rank) === address.words["of"]);
  const choose = (rank: number | undefined): void => go(withWords(address, { of: rank === undefined ? "" : String(rank) }), rank !== undefined && chosen === undefined);
  const opens = (rank: number): boolean => has(questions.rank, { ...choice, of: rank });
  const linkOf = (rank: number): string | undefined => (opens(rank) ? withWords(address, { of: String(rank) }) : undefined);
  return (
    <>
      <p class="lead">{of.sentence}</p>
      <Figures of={of.figures} />
      <Notes of={of} />
      {of.stragglers.length > 0 && (
        <section>
          <h2>{of.stragglers.length + of.stragglersLeftOut === 1 ? "The rank that is late" : "The ranks that are late"}</h2>
          <div class="stack">
            {of.stragglers.map((one) => (
              <Late key={one.rank} of={one} link={linkOf(one.rank)} />
            ))}
          </div>
          {of.stragglersLeftOut > 0 && <p class="muted">and {count(of.stragglersLeftOut)} more{of.table.leftOut === 0 && "; the table of ranks has them all"}.</p>}
        </section>
      )}
      {of.ranks.length > 1 && (
        <section>
          <h2>Every rank</h2>
          <HeatMap of={of} chosen={chosen} choose={choose} opens={opens} />
        </section>
      )}
      {chosen !== undefined && <RankDetails of={chosen} choice={choice} address={address} isTold={of.stragglers.some(({ rank }) => rank === chosen)} close={() => choose(undefined)} />}
      {of.ranks.length > 0 && of.partNames.length > 0 && <Steps of={of} address={address} linkOf={linkOf} />}
      <Numbers of={of} linkOf={linkOf} />
      <Tables of={of} />
    </>
  );
}

/** Where a rank is shown beside the others; undefined where that is not known here: a file has not all of many ranks. */
type LinkOf = (rank: number) => string | undefined;

function Steps({ of, address, linkOf }: { readonly of: Distributed; readonly address: Address; readonly linkOf: LinkOf }): JSX.Element {
  const order = address.words["order"] === "rank" ? "rank" : "own";
  const places = useMemo(() => (order === "rank" ? of.ranks.map((_, place) => place) : slowestFirst(of)), [of, order]);
  return (
    <section>
      <header class="row">
        <h2>{of.hasSteps ? "A step of each rank" : "The time of each rank"}</h2>
        {of.ranks.length > 2 && (
          <Segments
            label="Order of ranks"
            options={[
              ["own", "Slowest first"],
              ["rank", "By rank"],
            ]}
            value={order}
            choose={(next) => go(withWords(address, { order: next === "own" ? "" : next }), false)}
          />
        )}
      </header>
      <RankBars of={of} places={places} linkOf={linkOf} />
    </section>
  );
}

function Numbers({ of, linkOf }: { readonly of: Distributed; readonly linkOf: LinkOf }): JSX.Element {
  const heat = useMemo(() => heatOf(of.table), [of]);
  return (
    <section>
      <h2>Ranks by their numbers</h2>
      <p class="muted">
        {of.hasSteps ? "Times are a step’s." : "Times are of all that was recorded: no rank has steps."} The darker a cell, the more it is above the least of its column.
        {of.ranks.length > 2 && ` Slowest without communication: ${of.slowest.map((rank) => `rank ${rank}`).join(", ")}.`}
      </p>
      <DataTable
        of={of.table}
        word="ranks-"
        cell={(row, column) => {
          if (column.key === "rank") {
            const link = linkOf(of.ranks[row.index] ?? 0);
            return link === undefined ? undefined : <a href={link}>{row.cells[0]}</a>;
          }
          const share = heat.get(column.key)?.[row.index] ?? 0;
          const value = row.cells[of.table.columns.indexOf(column)];
          return share > 0.02 && typeof value === "number" ? (
            <span class="heat" style={{ "--share": share.toFixed(3) }}>
              {column.kind === "time" ? time(value) : count(value)}
            </span>
          ) : undefined;
        }}
      />
    </section>
  );
}

function Tables({ of }: { readonly of: Distributed }): JSX.Element {
  return (
    <>
      <TableSection of={of.groups} word="groups-" about="Times and bytes of all calls and ranks." />
      <TableSection of={of.collectives} word="collectives-" about="Transfer is the shortest over the ranks; waiting is what calls take longer elsewhere." />
      <TableSection of={of.domains} word="domains-" about="As Ascend’s profiler has it: times of all calls, steps and ranks." />
      <TableSection of={of.links} word="links-" about="As Ascend’s profiler has them: transfers of all steps. A link is slow below 80 % of the median of its transport." />
      {of.pairs.rows.length > 0 && <Pairs matrix={of.matrix} table={of.pairs} />}
      <TableSection of={of.varying} word="varying-" />
      <TableSection of={of.lines} word="lines-" />
      <TableSection
        of={of.clocks}
        word="clocks-"
        title="Clocks"
        about="Ranks are aligned by the collectives that they take part in together. The residual is how far the ends of their calls still lie apart."
      />
      {of.failures.length > 0 && (
        <section>
          <h2>Traces that could not be used</h2>
          <ul class="failures">
            {of.failures.map(({ path, rank, message }) => (
              <li key={path}>
                <strong>{rank === null ? path : `rank ${rank}`}</strong> {message}
              </li>
            ))}
          </ul>
          {of.failuresLeftOut > 0 && <p class="muted">and {count(of.failuresLeftOut)} more.</p>}
        </section>
      )}
    </>
  );
}

function Notes({ of }: { readonly of: Distributed }): JSX.Element {
  const { missing, ranks, worldSize } = of;
  return (
    <>
      {missing !== "" && (
        <p class="note">
          Of {count(worldSize)} ranks {count(worldSize - ranks.length)} {worldSize - ranks.length === 1 ? "has" : "have"} no trace here ({missing}): what they did is not known.
        </p>
      )}
      {!of.knowsWaits && ranks.length > 1 && of.collectives.rows.length > 0 && (
        <p class="note">Who waits for whom is unknown: no collectives could be matched over the ranks of their group.</p>
      )}
    </>
  );
}
