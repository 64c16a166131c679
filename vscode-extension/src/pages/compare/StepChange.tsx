/** The step in both runs, and where its true difference lies. */

import type { JSX } from "preact";
import type { TimeChange } from "../contract";
import { time } from "../words";
import { scaleOf } from "./changes";

export function StepChange({ of }: { readonly of: TimeChange }): JSX.Element {
  const { beforeNs, afterNs, changeNs, lowNs, highNs, verdict } = of;
  const isNoise = verdict === "within noise" || verdict === "unknown";
  const tone = isNoise ? "noise" : changeNs > 0 ? "slower" : "faster";
  const scale = scaleOf([changeNs, lowNs ?? 0, highNs ?? 0]);
  return (
    <div class={`stepchange ${tone}`}>
      <dl class="figures">
        <div>
          <dt>step before</dt>
          <dd>{time(beforeNs)}</dd>
        </div>
        <div>
          <dt>step after</dt>
          <dd>{time(afterNs)}</dd>
        </div>
        <div>
          <dt>difference</dt>
          <dd class="changed">
            {changeNs > 0 ? "+" : ""}
            {time(changeNs)}
            {beforeNs > 0 && (
              <small>
                {" "}
                {changeNs > 0 ? "+" : ""}
                {((100 * changeNs) / beforeNs).toFixed(1)} %
              </small>
            )}
          </dd>
        </div>
        <div>
          <dt>verdict</dt>
          <dd class="changed">{verdict === "unknown" ? "no interval" : verdict}</dd>
        </div>
      </dl>
      {lowNs !== null && highNs !== null && highNs > lowNs && (
        <div class="interval">
          <span class="room" role="img" aria-label={`The true difference lies between ${time(lowNs)} and ${time(highNs)}`}>
            <span class="whisker" style={{ left: `${100 * scale(lowNs)}%`, width: `${100 * (scale(highNs) - scale(lowNs))}%` }} />
            <span class="zero" style={{ left: `${100 * scale(0)}%` }} />
            <span class="dot" style={{ left: `${100 * scale(changeNs)}%` }} />
          </span>
          <span class="muted">
            The true difference lies between {lowNs > 0 ? "+" : ""}
            {time(lowNs)} and {highNs > 0 ? "+" : ""}
            {time(highNs)}
            {isNoise ? ": it may be none." : "."}
          </span>
        </div>
      )}
    </div>
  );
}
