/** Each step as a bar of its phases; a click shows that step alone. */

import type { JSX } from "preact";
import { choiceOf, go, useAddress, withWords } from "../app/address";
import type { StepBar } from "../contract";
import { Legend } from "../parts/Figures";
import { useOffers } from "../source/answers";
import { duration } from "../words";
import "./stepbars.css";

interface Mark {
  readonly label: string;
  readonly timeNs: number;
}

interface Props {
  readonly steps: readonly StepBar[];
  readonly phaseNames: readonly string[];
  /** Times at which lines are drawn. */
  readonly marks?: readonly Mark[];
}

const WIDEST = 78;
/** Pixels of a bar with its gap; a chart of few steps is not drawn out. */
const BESIDE = 110;
const LEAST = 320;
/** With more steps there is no room for words at each. */
const WITH_TIMES = 24;
const WITH_NUMBERS = 40;

export function StepBars({ steps, phaseNames, marks = [] }: Props): JSX.Element {
  const address = useAddress();
  const offers = useOffers();
  const most = Math.max(...steps.map(({ durationNs }) => durationNs), 1);
  const used = phaseNames.map((_, phase) => steps.some((step) => (step.phases[phase] ?? 0) > 0));
  return (
    <figure class="steps">
      <div class="stepchart" style={{ maxWidth: `${Math.max(steps.length * WIDEST + BESIDE, LEAST)}px` }}>
        <div class="bars">
          {steps.map((step) => (
            <button
              key={step.number}
              type="button"
              class="step"
              disabled={!offers({ ...choiceOf(address), step: step.number })}
              tabIndex={steps.length > WITH_NUMBERS ? -1 : 0}
              title={titleOf(step, phaseNames)}
              aria-label={`step ${step.number}: ${duration(step.durationNs)}`}
              onClick={() => go(withWords(address, { step: String(step.number) }))}
            >
              <span class="plot">
                <span class="stackbar" style={{ height: `${(100 * step.durationNs) / most}%` }}>
                  {steps.length <= WITH_TIMES && <span class="time">{duration(step.durationNs)}</span>}
                  {step.phases.map((time, phase) => (time > 0 ? <span key={phase} class={`part phase${phase}`} style={{ flexGrow: time }} /> : null))}
                </span>
              </span>
              {steps.length <= WITH_NUMBERS && <span class="label">{step.number}</span>}
            </button>
          ))}
        </div>
        <div class={`stepmarks ${steps.length <= WITH_NUMBERS ? "above" : ""}`} aria-hidden>
          {marks.map(({ label, timeNs }) => (
            <span key={label} class="stepmark" style={{ bottom: `${(100 * timeNs) / most}%` }}>
              <span>
                {label} {duration(timeNs)}
              </span>
            </span>
          ))}
        </div>
      </div>
      <Legend of={phaseNames.flatMap((name, phase) => (used[phase] === true ? [[name, `phase${phase}`] as const] : []))} />
    </figure>
  );
}

function titleOf(step: StepBar, phaseNames: readonly string[]): string {
  const phases = phaseNames.flatMap((name, phase) => ((step.phases[phase] ?? 0) > 0 ? [`${name} ${duration(step.phases[phase] ?? 0)}`] : []));
  return [`step ${step.number}: ${duration(step.durationNs)}`, ...phases].join("\n");
}
