/** Each step as a bar of its phases; a click shows that step alone. */

import type { JSX } from "preact";
import { go, useAddress, withWords } from "../app/address";
import type { StepBar } from "../contract";
import { duration } from "../words";

interface Props {
  readonly steps: readonly StepBar[];
  readonly phaseNames: readonly string[];
}

export function StepBars({ steps, phaseNames }: Props): JSX.Element {
  const address = useAddress();
  const most = Math.max(...steps.map(({ durationNs }) => durationNs), 1);
  const used = phaseNames.map((_, phase) => steps.some((step) => (step.phases[phase] ?? 0) > 0));
  return (
    <figure class="steps">
      <div class="bars" role="list">
        {steps.map((step) => (
          <button
            key={step.number}
            type="button"
            role="listitem"
            title={`step ${step.number}: ${duration(step.durationNs)}\n${phaseNames.flatMap((name, phase) => ((step.phases[phase] ?? 0) > 0 ? [`${name} ${duration(step.phases[phase] ?? 0)}`] : [])).join("\n")}`}
            aria-label={`step ${step.number}: ${duration(step.durationNs)}`}
            onClick={() => go(withWords(address, { step: String(step.number) }))}
          >
            <span class="time">{steps.length <= 24 ? duration(step.durationNs) : ""}</span>
            <span class="stackbar" style={{ height: `${(100 * step.durationNs) / most}%` }}>
              {step.phases.map((time, phase) => (time > 0 ? <span key={phase} class={`phase${phase}`} style={{ flexGrow: time }} /> : null))}
            </span>
            <span class="label">{steps.length <= 40 ? step.number : ""}</span>
          </button>
        ))}
      </div>
      <ul class="legend">
        {phaseNames.map((name, phase) =>
          used[phase] === true ? (
            <li key={name}>
              <span class={`swatch phase${phase}`} />
              {name}
            </li>
          ) : null,
        )}
      </ul>
    </figure>
  );
}
