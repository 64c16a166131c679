/** Below the timeline: the marked stretch, else the chosen slice, else what the colours mean. */

import type { JSX } from "preact";
import type { Choice, Found, Selection, SliceDetails, Timeline } from "../contract";
import { Answer } from "../parts/Answered";
import type { Answered } from "../source/useAnswer";
import { count } from "../words";
import { DetailsPanel } from "./DetailsPanel";
import { Legend } from "./Legend";
import { StretchPanel } from "./StretchPanel";

interface Props {
  readonly of: Timeline;
  readonly choice: Choice;
  /** Of which only the first is shown. */
  readonly ranks: readonly number[];
  readonly details: Answered<SliceDetails> | undefined;
  readonly sums: Answered<Selection> | undefined;
  readonly fitSlice: () => void;
  readonly fitStretch: () => void;
  readonly unmark: () => void;
  readonly jump: (slice: number) => void;
  readonly show: (found: Found) => void;
  readonly seek: (text: string) => void;
}

export function Panel(props: Props): JSX.Element {
  const { of, choice, ranks, details, sums } = props;
  if (sums !== undefined) {
    return (
      <div class="panel" aria-label="The marked stretch" role="region">
        <Answer of={sums}>
          {(shown) => <StretchPanel of={of} sums={shown} fit={props.fitStretch} clear={props.unmark} seek={props.seek} />}
        </Answer>
      </div>
    );
  }
  if (details !== undefined) {
    return (
      <div class="panel" aria-label="The chosen slice" role="region">
        <Answer of={details}>
          {(shown) => (
            <DetailsPanel of={of} choice={choice} details={shown} jump={props.jump} show={props.show} fit={props.fitSlice} seek={props.seek} />
          )}
        </Answer>
      </div>
    );
  }
  return (
    <div class="panel quiet">
      <Legend of={of} />
      <p class="muted">
        {ranks.length > 1 && `Rank ${ranks[0] ?? 0} of ${ranks.length} is shown; choose another one above. `}
        {count(of.slices)} slices. Click one for all that is known of it; shift and drag sums up a stretch of time.
      </p>
    </div>
  );
}
