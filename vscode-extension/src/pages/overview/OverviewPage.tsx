/** The first page: how long a step is, what it is made of, which lines and findings matter, why the device idles. */

import type { JSX } from "preact";
import { choiceOf, go, linkTo, withWords, type Address, type PageProps } from "../app/address";
import { questions, type Header, type HotLine, type Idle, type Overview, type Training } from "../contract";
import { FindingCard } from "../findings/FindingCard";
import { Answer, useAnswer, useOffers } from "../source/answers";
import { TableSection } from "../parts/DataTable";
import { Facts, Figures } from "../parts/Figures";
import { NamedTimes, TimeBars } from "../parts/Lists";
import { Place } from "../parts/Place";
import { duration, share } from "../words";
import { PartsBar } from "../parts/StackBar";
import { StepBars } from "./StepBars";
import "../parts/parts.css";

export function OverviewPage({ address, header }: PageProps): JSX.Element {
  const found = useAnswer(questions.overview, choiceOf(address));
  return (
    <Answer of={found}>
      {(answer) => (
        <>
          <p class="lead">{answer.sentence}</p>
          <Figures of={answer.figures} />
          <div class="columns">
            <section>
              <h2>{answer.lines.length > 0 ? "The lines that cost most" : "The work that costs most"}</h2>
              {answer.lines.length > 0 && <HotLines lines={answer.lines} unit={answer.steps.length > 0 ? " a step" : ""} />}
              {answer.lines.length > 0 && <a href={linkTo(address, "lines")}>All lines</a>}
              <Work of={answer} header={header} />
            </section>
            <section>
              <h2>What to change</h2>
              <Advice of={answer} address={address} />
            </section>
          </div>
          <TableSection of={answer.serving} word="serving-" />
          {answer.steps.length > 1 && (
            <section>
              <h2>Steps</h2>
              <StepBars steps={answer.steps} phaseNames={answer.phaseNames} />
              <a href={linkTo(address, "steps")}>Times and the slowest steps</a>
            </section>
          )}
          {answer.serving === null && <TrainingRun of={answer.training} address={address} />}
          {answer.idle !== null && <IdleTime of={answer.idle} />}
          {answer.splits.map((split) => (
            <section key={`${split.section} ${split.device}`}>
              <figure class="split">
                <figcaption>
                  <h2>{split.device === "" ? split.title : `${split.title}: ${split.device}`}</h2>
                  <span class="muted">{split.help}</span>
                </figcaption>
                <PartsBar parts={split.parts} isPartition={split.isPartition} />
              </figure>
            </section>
          ))}
          <section>
            <h2>Where this was recorded</h2>
            <Facts of={header.facts} />
          </section>
        </>
      )}
    </Answer>
  );
}

/** Modules, operators and kernels, where lines do not divide the time. */
function Work({ of, header }: { readonly of: Overview; readonly header: Header }): JSX.Element | null {
  const [first] = of.lines;
  if (of.work.length === 0) {
    return first === undefined ? <p class="muted">This trace has neither lines of code nor work with a name.</p> : null;
  }
  const what = header.isDevice ? "the device's work" : "the operators' CPU time";
  return (
    <div class="work">
      <p class="muted">
        {first !== undefined && `${first.place} calls most of it. `}
        Parts of {what}:
      </p>
      {of.work.map(({ page, title, rows, wholeNs }) => (
        <NamedTimes key={page} title={title} page={page} of={rows} wholeNs={wholeNs} />
      ))}
    </div>
  );
}

function HotLines({ lines, unit }: { readonly lines: readonly HotLine[]; readonly unit: string }): JSX.Element {
  return (
    <ol class="hotlines">
      {lines.map((line) => (
        <li key={`${line.file}:${line.line}`}>
          <div class="row">
            <Place of={line} />
            <span class="muted">{line.function}</span>
            <span class="grow" />
            {line.verdict !== "" && <span class="chip">{line.verdict}</span>}
            <span class="number">
              {duration(line.costPerStepNs)}
              {unit}
            </span>
            <span class="number strong">{share(line.share)}</span>
          </div>
          <code>{line.source}</code>
          <meter min={0} max={1} value={line.share} aria-label="Share of the cost" />
        </li>
      ))}
    </ol>
  );
}

function Advice({ of, address }: { readonly of: Overview; readonly address: Address }): JSX.Element {
  if (of.findings.length === 0) {
    return <p class="muted">{of.withoutFindings}</p>;
  }
  return (
    <div class="stack">
      {of.findings.map((one) => (
        <FindingCard key={`${one.code} ${one.file}:${one.line}`} of={one} isShort />
      ))}
      {of.moreFindings > 0 && <a href={linkTo(address, "findings")}>{of.moreFindings} more</a>}
    </div>
  );
}

function IdleTime({ of }: { readonly of: Idle }): JSX.Element {
  return (
    <div class="columns">
      <section>
        <h2>Why the device idles</h2>
        <PartsBar parts={of.causes} />
      </section>
      <TimeBars
        level="h2"
          title="Lines on which it idles most"
          wholeNs={of.wholeNs}
          rows={of.lines.map(({ file, line, place, function: name, idleNs, cause }) => ({
            key: `${file}:${line}`,
            label: <Place of={{ file, line, place }} />,
            title: `${name} (${share(of.wholeNs > 0 ? idleNs / of.wholeNs : 0)} of the idle time)`,
            timeNs: idleNs,
            more: cause,
          }))}
      />
    </div>
  );
}

/** The phases of its steps, its stage, and what the framework does between the lines. */
function TrainingRun({ of, address }: { readonly of: Training; readonly address: Address }): JSX.Element | null {
  const offers = useOffers();
  if (of.phases.length < 2 && of.parts.length === 0) {
    return null;
  }
  return (
    <div class="columns">
      <section>
        <h2>What the training thread does</h2>
        <PartsBar parts={of.phases} />
        {of.stage !== "" && (
          <p class="muted">
            Stage {of.stage}
            {of.alsoRecorded.length > 0 && "; also recorded: "}
            {of.alsoRecorded.map((stage, at) => (
              <span key={stage}>
                {at > 0 && ", "}
                <button type="button" class="link" disabled={!offers({ ...choiceOf(address), stage, step: null })} onClick={() => go(withWords(address, { stage, step: "" }))}>
                  {stage}
                </button>
              </span>
            ))}
          </p>
        )}
      </section>
      {of.parts.length > 0 && (
        <TimeBars
          level="h2"
            title={`What ${of.framework === "" ? "the framework" : of.framework} does by itself`}
            rows={of.parts.map(({ part, timeNs, file, line, place }) => ({
              key: `${part} ${file}:${line}`,
              label: (
                <>
                  {part}{" "}
                  <Place of={{ file, line, place }} class="muted" />
                </>
              ),
              title: part,
              timeNs,
            }))}
        />
      )}
    </div>
  );
}
