/** A training run's own things: its stage, the phases of its steps, what the framework does between the lines. */

import type { JSX } from "preact";
import { go, withWords, type Address } from "../app/address";
import type { Training } from "../contract";
import { Place } from "../parts/Place";
import { TimeBars } from "../parts/Lists";
import { PartsBar } from "./SplitBar";

export function TrainingRun({ of, address }: { readonly of: Training; readonly address: Address }): JSX.Element | null {
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
                <button type="button" class="link" onClick={() => go(withWords(address, { stage, step: "" }))}>
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
