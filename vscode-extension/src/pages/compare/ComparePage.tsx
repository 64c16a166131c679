/** A run beside an earlier one: what became slower or faster, and what may be noise. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { choiceOf, go, withWords, type Address, type PageProps } from "../app/address";
import { questions, type Compared, type ComparedNumber, type ComparedTable, type Table, type TimeChange } from "../contract";
import { Answer, useAnswer } from "../source/answers";
import { DataTable } from "../parts/DataTable";
import { Check, Segments } from "../parts/Controls";
import { Terms } from "../parts/Figures";
import { signed, time } from "../words";
import { changesOf, DivergingBars, scaleOf, withoutNoise } from "./DivergingBars";
import "./compare.css";

const TABLES: readonly (readonly [ComparedTable, string])[] = [
  ["line", "Lines"],
  ["operator", "Operators"],
  ["kernel", "Kernels"],
  ["module", "Modules"],
  ["phase", "Phases"],
  ["step", "Step"],
];
const NUMBERS: readonly (readonly [ComparedNumber, string])[] = [
  ["cost", "Cost"],
  ["self", "Own device time"],
];
const BARS = 12;

export function ComparePage({ address }: PageProps): JSX.Element {
  const { words } = address;
  const by = TABLES.find(([name]) => name === words["by"])?.[0] ?? "line";
  const number = words["number"] === "self" ? "self" : "cost";
  const found = useAnswer(questions.compare, { ...choiceOf(address), ...(words["baseline"] === undefined ? {} : { baseline: words["baseline"] }), by, number }, true);
  return <Answer of={found}>{(answer) => (answer.before === null ? <NoOther /> : <Body of={answer} address={address} />)}</Answer>;
}

function NoOther(): JSX.Element {
  return (
    <section class="empty">
      <p>
        No earlier run of the same program (script, arguments, project and most lines) is here. Record the program again after a change, into the same folder, and this page shows what became slower or faster, and what is within noise.
      </p>
      <p class="muted">
        Any other run can be chosen above (“compared with”), or open both: <code>deepscope view BEFORE AFTER</code>
      </p>
    </section>
  );
}

function Body({ of, address }: { readonly of: Compared; readonly address: Address }): JSX.Element {
  const showsNoise = address.words["noise"] === "1" || !of.hasIntervals;
  const table = useMemo(() => (showsNoise ? of.rows : withoutNoise(of)), [of, showsNoise]);
  const changes = useMemo(() => changesOf(table), [table]);
  const within = of.rows.rows.length - of.beyondNoise;
  return (
    <>
      <Sides of={of} address={address} />
      {of.step !== null && <StepChange of={of.step} />}
      <p class="muted noise-words">{of.noiseWords}.</p>
      <div class="choices">
        <Segments label="Compare by" options={TABLES} value={of.by} choose={(by) => go(withWords(address, { by: by === "line" ? "" : by }))} />
        {of.by === "line" && <Segments label="Of a line" options={NUMBERS} value={of.number} choose={(number) => go(withWords(address, { number: number === "cost" ? "" : number }))} />}
        {of.hasIntervals && (
          <Check words={`Show what is within noise (${within})`} isOn={showsNoise} turn={(isOn) => go(withWords(address, { noise: isOn ? "1" : "" }), false)} />
        )}
      </div>
      {table.rows.length === 0 ? (
        <p class="quiet-answer">{of.rows.rows.length === 0 ? `No ${of.by} has changed.` : `Nothing here differs by more than noise; ${within} ${within === 1 ? "row is" : "rows are"} within it.`}</p>
      ) : (
        <>
          <DivergingBars changes={changes.slice(0, BARS)} more={Math.max(changes.length - BARS, 0)} />
          <section>
            <Changes of={table} />
          </section>
        </>
      )}
    </>
  );
}

/** The rows; those within noise grey. */
function Changes({ of }: { readonly of: Table }): JSX.Element {
  const verdict = of.columns.findIndex(({ key }) => key === "verdict");
  return (
    <DataTable
      of={of}
      cell={(row, column) => {
        const word = String(row.cells[verdict] ?? "");
        const at = of.columns.indexOf(column);
        const value = row.cells[at];
        if (column.key === "verdict") {
          return <span class={`verdict ${classOf(word)}`}>{word}</span>;
        }
        if (column.key === "change_ns" && typeof value === "number") {
          return <span class={`verdict ${classOf(word, value)}`}>{signed(value)}</span>;
        }
        if (column.key === "low_ns" || column.key === "high_ns") {
          return typeof value === "number" ? <span class="muted">{signed(value)}</span> : undefined;
        }
        return column.key === "change_share" && typeof value === "number" ? <span class={classOf(word, value)}>{`${value > 0 ? "+" : ""}${(100 * value).toFixed(Math.abs(value) < 0.1 ? 1 : 0)} %`}</span> : undefined;
      }}
    />
  );
}

function classOf(verdict: string, change = 0): string {
  if (verdict === "within noise" || verdict === "unknown") {
    return "noise";
  }
  return verdict === "slower" || (verdict !== "faster" && (change > 0 || verdict === "new")) ? "slower" : "faster";
}

function Sides({ of, address }: { readonly of: Compared; readonly address: Address }): JSX.Element {
  const { before, after } = of;
  if (before === null) {
    return <></>;
  }
  return (
    <div class="sides">
      <Side title="Before" of={before} />
      <span class="arrow" aria-hidden="true">
        →
      </span>
      <Side title="After" of={after} />
      <button type="button" title="The other way round" onClick={() => go(withWords(address, { run: before.run, baseline: after.run }))}>
        Swap
      </button>
    </div>
  );
}

function Side({ title, of }: { readonly title: string; readonly of: Compared["after"] }): JSX.Element {
  const when = new Date(of.recordedAt);
  const [, window] = of.run.split("~");
  return (
    <div class="side">
      <span class="muted">{title}</span>
      <strong>{of.title}</strong>
      <span class="muted">
        {Number.isNaN(when.getTime()) ? "" : when.toLocaleString([], { dateStyle: "medium", timeStyle: "medium" })}
        {window === undefined ? "" : ` · window ${window}`}
        {of.steps > 0 ? ` · ${of.steps} ${of.steps === 1 ? "step" : "steps"}` : ""}
      </span>
    </div>
  );
}

/** The step in both runs, and where its true difference lies. */
function StepChange({ of }: { readonly of: TimeChange }): JSX.Element {
  const { beforeNs, afterNs, changeNs, lowNs, highNs, verdict } = of;
  const isNoise = verdict === "within noise" || verdict === "unknown";
  const tone = isNoise ? "noise" : changeNs > 0 ? "slower" : "faster";
  const scale = scaleOf([changeNs, lowNs ?? 0, highNs ?? 0]);
  return (
    <div class={`stepchange ${tone}`}>
      <Terms
        class="figures"
        of={[
          ["step before", time(beforeNs)],
          ["step after", time(afterNs)],
          [
            "difference",
            <span class="changed">
              {signed(changeNs)}
              {beforeNs > 0 && <small>{` ${changeNs > 0 ? "+" : ""}${((100 * changeNs) / beforeNs).toFixed(1)} %`}</small>}
            </span>,
          ],
          ["verdict", <span class="changed">{verdict === "unknown" ? "no interval" : verdict}</span>],
        ]}
      />
      {lowNs !== null && highNs !== null && highNs > lowNs && (
        <div class="interval">
          <span class="room" role="img" aria-label={`The true difference lies between ${time(lowNs)} and ${time(highNs)}`}>
            <span class="whisker" style={{ left: `${100 * scale(lowNs)}%`, width: `${100 * (scale(highNs) - scale(lowNs))}%` }} />
            <span class="zero" style={{ left: `${100 * scale(0)}%` }} />
            <span class="dot" style={{ left: `${100 * scale(changeNs)}%` }} />
          </span>
          <span class="muted">
            The true difference lies between {signed(lowNs)} and {signed(highNs)}
            {isNoise ? ": it may be none." : "."}
          </span>
        </div>
      )}
    </div>
  );
}
