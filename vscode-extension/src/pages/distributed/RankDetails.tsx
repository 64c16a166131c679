/** One rank beside the median of the others, and why it is late. */

import type { JSX } from "preact";
import { linkTo, type Address } from "../app/address";
import { questions, type BesideNumber, type Choice, type LateRank, type RankPage } from "../contract";
import { Answer, useAnswer, useOffers } from "../source/answers";
import { TableSection } from "../parts/DataTable";
import { time, words } from "../words";
import { aboveWords } from "./HeatMap";
import { Terms, type Term } from "../parts/Figures";
import { Place } from "../parts/Place";

interface Props {
  readonly of: number;
  readonly choice: Choice;
  readonly address: Address;
  /** Whether why it is late stands above. */
  readonly isTold: boolean;
  readonly close: () => void;
}

export function RankDetails({ of, choice, address, isTold, close }: Props): JSX.Element {
  const found = useAnswer(questions.rank, { ...choice, of });
  const offers = useOffers();
  return (
    <section class="rankdetails" aria-label={`Rank ${of}`}>
      <header class="row">
        <h2>Rank {of}</h2>
        {offers({ ...choice, rank: of }) && <a href={linkTo(address, "overview", { rank: String(of) })}>Show it alone</a>}
        <button type="button" class="close" aria-label="Close" title="Close" onClick={close}>
          ×
        </button>
      </header>
      <Answer of={found}>{(answer) => <Body of={answer} isTold={isTold} />}</Answer>
    </section>
  );
}

function Body({ of, isTold }: { readonly of: RankPage; readonly isTold: boolean }): JSX.Element {
  const { offsetNs, residualNs } = of;
  const unit = of.hasSteps ? "a step" : "in all";
  return (
    <>
      <p>{of.sentence}</p>
      <p class="muted">
        {[of.host, of.device, clockWords(offsetNs, residualNs)].filter((word) => word !== "").join(" · ")}
      </p>
      {of.late !== null && !isTold && (
        <div class="stack">
          <Late of={of.late} isWithin />
        </div>
      )}
      <div class="columns">
        <Beside title="Its numbers" of={of.numbers} />
        <Beside title={of.hasSteps ? "The parts of its step" : "The parts of its time"} of={of.parts} />
      </div>
      <TableSection level="h3" of={of.lines} word="rank-lines-" about={`Times ${unit}, without communication.`} />
      <TableSection level="h3" of={of.collectives} word="rank-collectives-" about={`Times ${unit}.`} />
      <TableSection level="h3" of={of.comesLast} word="rank-last-" title="Where it comes last more often than any other rank" />
      <TableSection level="h3" of={of.pairs} word="rank-pairs-" title="Its messages" about={of.hasSteps ? "Of all steps." : ""} />
      <TableSection level="h3" of={of.work} word="rank-work-" about={`Times ${unit}.`} />
    </>
  );
}

function clockWords(offsetNs: number | null, residualNs: number | null): string {
  if (offsetNs === null) {
    return "";
  }
  const known = `, known to ${time(residualNs ?? 0)}`;
  return offsetNs === 0 ? "the clock that the others are aligned to" : `its clock is ${time(Math.abs(offsetNs))} ${offsetNs > 0 ? "behind" : "ahead"}${known}`;
}

function Beside({ title, of }: { readonly title: string; readonly of: readonly BesideNumber[] }): JSX.Element | null {
  return of.length === 0 ? null : (
    <table class="ranknumbers">
      <caption>{title}</caption>
      <thead>
        <tr>
          <td />
          <th scope="col">here</th>
          <th scope="col">others</th>
          <th scope="col" />
        </tr>
      </thead>
      <tbody>
        {of.map(({ label, kind, value, typical }) => (
          <tr key={label}>
            <th scope="row">{label}</th>
            <td>{words(value, kind)}</td>
            <td>{words(typical, kind)}</td>
            <td class="muted">{value !== null && typical !== null && kind !== "count" ? aboveWords(value, typical) : ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface LateProps {
  readonly of: LateRank;
  /** Where the rank is shown beside the others, if it is. */
  readonly link?: string | undefined;
  /** Whether it stands in what is shown of the rank, which needs no name there. */
  readonly isWithin?: boolean;
}

/** By how much a rank is late, why, and the line that made it late. */
export function Late({ of, link, isWithin = false }: LateProps): JSX.Element {
  return (
    <article class="finding warning">
      <header>
        <h3>{isWithin ? "It is late" : link === undefined ? `Rank ${of.rank}` : <a href={link}>Rank {of.rank}</a>}</h3>
        <span class="late">+{time(of.excessNs)}</span>
      </header>
      <p>{of.message}</p>
      {of.part !== "" && (
        <p class="muted">
          Of its step’s parts “{of.part}”{of.part === "other" && ", in which nothing is recorded,"} is longer by most: +{time(of.partNs)}.
        </p>
      )}
      {of.place !== "" && (
        <p>
          <Place of={of} />{" "}
          <span class="muted">{of.function}</span> takes it {time(of.lineNs)} more than the others. <code>{of.source}</code>
        </p>
      )}
      {(of.cause !== "" || of.figures.length > 0) && (
        <Terms class="evidence" of={[...(of.cause === "" ? [] : [["cause", of.cause] as const]), ...of.figures.map(lateFigure)]} />
      )}
    </article>
  );
}

function lateFigure({ label, value, typical }: LateRank["figures"][number]): Term {
  return [
    label,
    <>
      {value} <span class="muted">(others {typical})</span>
    </>,
  ];
}
