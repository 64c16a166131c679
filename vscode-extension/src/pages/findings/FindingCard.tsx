/** A piece of advice: what and where, what it may save, what to change. */

import type { JSX } from "preact";
import type { ShownFinding } from "../contract";
import { Place } from "../parts/Place";
import { duration, share, words } from "../words";

export function FindingCard({ of, isShort = false }: { readonly of: ShownFinding; readonly isShort?: boolean }): JSX.Element {
  return (
    <article class={`finding ${of.severity}`}>
      <header>
        <h3>
          <span class="code">{of.code}</span> {of.title}
        </h3>
        {of.savingNs > 0 && (
          <span class="saving" title="The most that could be saved, of the wall time">
            up to {share(of.savingShare)}
          </span>
        )}
      </header>
      {of.place !== "" && (
        <p>
          <Place file={of.file} line={of.line}>
            {of.place}
          </Place>
          {of.function !== "" && <span class="muted"> in {of.function}</span>}
        </p>
      )}
      <p>{of.message}</p>
      <p class="remedy">{of.remedy}</p>
      {!isShort && of.evidence.length > 0 && (
        <dl class="evidence">
          {of.savingNs > 0 && (
            <div>
              <dt>could save</dt>
              <dd>{duration(of.savingNs)}</dd>
            </div>
          )}
          {of.evidence.map(({ label, value, kind }) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>{words(value, kind)}</dd>
            </div>
          ))}
        </dl>
      )}
    </article>
  );
}
