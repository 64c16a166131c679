/** Below the timeline while nothing is chosen: what the colours mean, and what is shown. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { SliceKind, Timeline } from "../contract";
import { useThemeVersion } from "../parts/browser";
import { Legend } from "../parts/Figures";
import { count } from "../words";
import { fillOf, paletteOf } from "./palette";

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

interface Props {
  readonly of: Timeline;
  /** Of which only the first is shown. */
  readonly ranks: readonly number[];
}

export function ColoursPanel({ of, ranks }: Props): JSX.Element {
  const theme = useThemeVersion();
  const palette = useMemo(() => paletteOf(document.documentElement), [theme]);
  return (
    <div class="panel quiet">
      <Legend of={of.kinds.flatMap((kind) => (WORDS[kind] === undefined ? [] : [[WORDS[kind], palette.fills[fillOf(kind, "", 0, -1, "kind")] ?? ""] as const]))} />
      <p class="muted">
        {ranks.length > 1 && `Rank ${ranks[0] ?? 0} of ${ranks.length} is shown; choose another one above. `}
        {count(of.slices)} slices. Click one for all that is known of it; shift and drag sums up a stretch of time.
      </p>
    </div>
  );
}
