/** Ranks side by side: what each one's step is made of, which one is late and where, what collectives cost. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { choiceOf, go, linkTo, withWords, type Address } from "../app/address";
import type { PageProps } from "../app/registry";
import { questions, type Distributed, type Straggler } from "../contract";
import { Answer } from "../parts/Answered";
import { DataTable } from "../parts/DataTable";
import { Figures } from "../parts/Figures";
import { Place } from "../parts/Place";
import { Segments } from "../parts/Segments";
import { useAnswer } from "../source/useAnswer";
import { count, time } from "../words";
import { heatOf, rankTable, slowestFirst } from "./heat";
import { RankBars } from "./RankBars";
import "./distributed.css";

export function DistributedPage({ address }: PageProps): JSX.Element {
  const words = Object.fromEntries(Object.entries(address.words).filter(([name]) => name !== "rank"));
  const found = useAnswer(questions.distributed, choiceOf({ ...address, words }));
  return <Answer of={found}>{(answer) => <Body of={answer} address={address} />}</Answer>;
}

function Body({ of, address }: { readonly of: Distributed; readonly address: Address }): JSX.Element {
  const order = address.words["order"] === "rank" ? "rank" : "own";
  const ranks = useMemo(() => (order === "rank" ? of.ranks : slowestFirst(of.ranks)), [of, order]);
  const table = useMemo(() => rankTable(ranks), [ranks]);
  const heat = useMemo(() => heatOf(table), [table]);
  return (
    <>
      <p class="lead">{of.sentence}</p>
      <Figures of={of.figures} />
      <Notes of={of} />
      {of.stragglers.length > 0 && (
        <section>
          <h2>{of.stragglers.length === 1 ? "The rank that is late" : "The ranks that are late"}</h2>
          <div class="stack">
            {of.stragglers.slice(0, 5).map((one) => (
              <Late key={one.rank} of={one} knowsWaits={of.knowsWaits} address={address} />
            ))}
          </div>
        </section>
      )}
      {of.ranks.length > 0 && of.partNames.length > 0 && (
        <section>
          <header class="row">
            <h2>A step of each rank</h2>
            {ranks.length > 2 && (
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
          <RankBars ranks={ranks} partNames={of.partNames} address={address} />
        </section>
      )}
      <section>
        <h2>Ranks by their numbers</h2>
        <p class="muted">Times are a step’s. The darker a cell, the more it is above the least of its column.{of.ranks.length > 2 && ` Slowest without communication: ${of.slowest.map((rank) => `rank ${rank}`).join(", ")}.`}</p>
        <DataTable
          of={table}
          word="ranks-"
          cell={(row, column) => {
            const share = heat.get(column.key)?.[row.index] ?? 0;
            const at = table.columns.indexOf(column);
            const value = row.cells[at];
            return share > 0.02 && typeof value === "number" ? (
              <span class="heat" style={{ "--share": share.toFixed(3) }}>
                {column.kind === "time" ? time(value) : count(value)}
              </span>
            ) : undefined;
          }}
        />
      </section>
      {of.collectives.rows.length > 0 && (
        <section>
          <h2>Collectives</h2>
          <DataTable of={of.collectives} word="collectives-" />
        </section>
      )}
      {of.lines.rows.length > 0 && (
        <section>
          <h2>Lines that differ between ranks</h2>
          <DataTable of={of.lines} word="lines-" />
        </section>
      )}
    </>
  );
}

function Notes({ of }: { readonly of: Distributed }): JSX.Element {
  const { missing, ranks } = of;
  return (
    <>
      {missing > 0 && (
        <p class="note">
          Of {count(missing + ranks.length)} ranks {count(missing)} {missing === 1 ? "has" : "have"} no trace here: what they did is not known.
        </p>
      )}
      {!of.knowsWaits && ranks.length > 1 && of.collectives.rows.length > 0 && (
        <p class="note">Who waits for whom is not told here: it takes the ranks of each process group (torch writes them since 2.3), a trace of each of them, and as many calls on each. Late ranks are those with the longest steps without communication.</p>
      )}
    </>
  );
}

interface LateProps {
  readonly of: Straggler;
  readonly knowsWaits: boolean;
  readonly address: Address;
}

function Late({ of, knowsWaits, address }: LateProps): JSX.Element {
  return (
    <article class="finding warning">
      <header>
        <h3>
          <a href={linkTo(address, "overview", { rank: String(of.rank) })}>Rank {of.rank}</a>
        </h3>
        <span class="late">+{time(of.excessNs)} a step</span>
      </header>
      <p class="muted">{knowsWaits ? "By so much less than the others it waits in collectives: they wait for it." : "By so much its step without communication is longer than the others’."}</p>
      {of.part !== "" && (
        <p>
          Of its step’s parts “{of.part}”{of.part === "other" && ", in which nothing is recorded,"} is longer by most: +{time(of.partNs)}.
        </p>
      )}
      {of.place !== "" && (
        <p>
          <Place file={of.file} line={of.line}>
            {of.place}
          </Place>{" "}
          <span class="muted">{of.function}</span> costs it {time(of.lineNs)} a step more than the others. <code>{of.source}</code>
        </p>
      )}
    </article>
  );
}
