/** The steps: how long, by phase; the slow ones and the lines that made them slow; threads, streams, what the machine did. */

import type { ComponentChildren, JSX } from "preact";
import { choiceOf, go, withWords, type Address, type PageProps } from "../app/address";
import { questions, type CounterChart, type Figure, type SlowStep, type Steps, type Table } from "../contract";
import { StepBars } from "../overview/StepBars";
import { Answer, useAnswer, useOffers } from "../source/answers";
import { DataTable, TableSection } from "../parts/DataTable";
import { Figures } from "../parts/Figures";
import { Place } from "../parts/Place";
import { duration, valueWords } from "../words";
import { Chart } from "../parts/Chart";
import { placeOf } from "../parts/chartScale";
import "./steps.css";

export function StepsPage({ address, header }: PageProps): JSX.Element {
  const found = useAnswer(questions.steps, choiceOf(address));
  return (
    <Answer of={found}>
      {(answer) => (
        <>
          {header.step !== null && (
            <p class="note">
              Only step {header.step} is shown. <a href={withWords(address, { step: "" })}>Show all steps</a>
            </p>
          )}
          {answer.bars.length > 0 ? (
            <Times of={answer} address={address} />
          ) : (
            answer.serving === null && <p class="muted">The trace has no steps: none was marked while it was recorded.</p>
          )}
          {[answer.servingPhases, answer.serving].map(section)}
          <Counters charts={answer.counterCharts} table={answer.counters} />
          {[answer.streams, answer.threads].map(section)}
        </>
      )}
    </Answer>
  );
}

function section(of: Table | null): JSX.Element | null {
  return of && <TableSection key={of.id} of={of} word={`${of.id}.`} />;
}

function Times({ of, address }: { readonly of: Steps; readonly address: Address }): JSX.Element {
  return (
    <>
      {of.bars.length > 1 && <Figures of={of.figures} />}
      {of.bars.length > 1 && (
        <section>
          <h2>Time of each step</h2>
          <StepBars steps={of.bars} phaseNames={of.phaseNames} marks={marksOf(of.figures)} />
        </section>
      )}
      {of.bars.length > 1 && of.slow.length > 0 && (
        <section>
          <h2>The longest steps</h2>
          <Slow of={of.slow} address={address} />
        </section>
      )}
      <section>
        <h2>{of.bars.length > 1 ? "All steps" : "The step"}</h2>
        <DataTable
          of={of.table}
          word="steps."
          cell={(row, column) => {
            const number = row.cells[0];
            return column.key !== "number" || number === null || of.bars.length < 2 ? undefined : (
              <StepLink number={Number(number)} address={address}>
                {number}
              </StepLink>
            );
          }}
        />
      </section>
    </>
  );
}

/** A link to a step alone, where that can be shown. */
function StepLink({ number, address, children }: { readonly number: number; readonly address: Address; readonly children: ComponentChildren }): JSX.Element {
  const offers = useOffers();
  if (!offers({ ...choiceOf(address), step: number })) {
    return <>{children}</>;
  }
  const step = String(number);
  return (
    <a href={withWords(address, { step })} title={`Show step ${step} alone`} onClick={(event) => chosen(event, address, step)}>
      {children}
    </a>
  );
}

function chosen(event: MouseEvent, address: Address, step: string): void {
  if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    go(withWords(address, { step }));
  }
}

/** The line across the bars: the median. */
function marksOf(figures: readonly Figure[]): readonly { readonly label: string; readonly timeNs: number }[] {
  return figures.flatMap(({ label, value }) => (label === "median" ? [{ label, timeNs: value }] : []));
}

function Slow({ of, address }: { readonly of: readonly SlowStep[]; readonly address: Address }): JSX.Element {
  return (
    <ul class="slowsteps">
      {of.map((step) => (
        <li key={step.number}>
          <StepLink number={step.number} address={address}>
            step {step.number}
          </StepLink>{" "}
          took <strong>{duration(step.durationNs)}</strong>, {duration(step.overNs)} over the
          median
          {step.place === "" ? (
            <span class="muted">; no line took longer than it usually does</span>
          ) : (
            <>
              ;{" "}
              <Place of={step} />{" "}
              <span class="muted">{step.function}</span> took {duration(step.excessNs)} more than it usually does
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

interface Props {
  readonly charts: readonly CounterChart[];
  readonly table: Table;
}

const HEIGHT = 120;
const TONES = 8;

function Counters({ charts, table }: Props): JSX.Element | null {
  return table.rows.length === 0 ? null : (
    <section>
      <h2>{table.title}</h2>
      {charts.length > 0 && (
        <div class="counters">
          {charts.map((chart) => (
            <Counter key={chart.title} of={chart} />
          ))}
        </div>
      )}
      <DataTable of={table} word="counters." />
    </section>
  );
}

function Counter({ of }: { readonly of: CounterChart }): JSX.Element {
  const last = of.steps.at(-1) ?? 0;
  return (
    <div class="counter">
      <h3 title={of.help}>{of.title}</h3>
      <Chart
        label={`${of.title}, the mean in each ${of.end - last === 1 ? "step" : `${of.end - last} steps`}`}
        // The last value holds to the end of its steps.
        at={[...of.steps, of.end]}
        series={of.lines.map(({ label, values }, place) => ({ label, values: [...values, values.at(-1) ?? null], colour: `--tone${place % TONES}` }))}
        whole={[of.steps[0] ?? 0, of.end]}
        height={HEIGHT}
        words={(value) => valueWords(value, of.unit)}
        atWords={(at) => stepsWords(of, at)}
        axisWords={(at) => (at < of.end ? `step ${at}` : "")}
        base={of.unit === "bytes" || of.unit === "bytesPerSecond" ? 2 : 10}
        isCounted
      />
      {of.leftOut > 0 && <p class="muted">{of.leftOut} more in the table</p>}
    </div>
  );
}

/** `step 4`, or the block of steps that a moment lies in: `steps 8–15`. Behind the last block it is the last one. */
export function stepsWords({ steps, end }: Pick<CounterChart, "steps" | "end">, at: number): string {
  const length = end - (steps.at(-1) ?? 0);
  const first = steps[placeOf(steps, at)] ?? 0;
  return length > 1 ? `steps ${first}–${first + length - 1}` : `step ${first}`;
}
