/** Below the timeline: the marked stretch, else the chosen slice, else what the colours mean. */

import type { JSX } from "preact";
import type { Choice, Found, Selection, SliceDetails, SliceKind, Timeline } from "../contract";
import { Answer, type Answered } from "../source/answers";
import { count } from "../words";
import { DetailsPanel } from "./DetailsPanel";
import { StretchPanel } from "./StretchPanel";
import { useMemo } from "preact/hooks";
import { Legend } from "../parts/Figures";
import { useThemeVersion } from "../parts/browser";
import { fillOf, paletteOf } from "./palette";

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
      <Colours of={of} />
      <p class="muted">
        {ranks.length > 1 && `Rank ${ranks[0] ?? 0} of ${ranks.length} is shown; choose another one above. `}
        {count(of.slices)} slices. Click one for all that is known of it; shift and drag sums up a stretch of time.
      </p>
    </div>
  );
}

const WORDS: Readonly<Partial<Record<SliceKind, string>>> = {
  line: "your lines",
  library: "library lines",
  frame: "Python frames",
  module: "modules",
  operator: "operators",
  runtime: "runtime calls",
  kernel: "kernels",
  copy: "copies",
  collective: "collectives",
};

function Colours({ of }: { readonly of: Timeline }): JSX.Element {
  const theme = useThemeVersion();
  const palette = useMemo(() => paletteOf(document.documentElement), [theme]);
  return <Legend of={of.kinds.flatMap((kind) => (WORDS[kind] === undefined ? [] : [[WORDS[kind], palette.fills[fillOf(kind, "", 0, -1, "kind")] ?? ""] as const]))} />;
}
