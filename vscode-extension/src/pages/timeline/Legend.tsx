/** What the colours mean. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { SliceKind, Timeline } from "../contract";
import { useThemeVersion } from "../parts/useTheme";
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

export function Legend({ of }: { readonly of: Timeline }): JSX.Element {
  const theme = useThemeVersion();
  const palette = useMemo(() => paletteOf(document.documentElement), [theme]);
  const kinds = of.kinds.filter((kind) => WORDS[kind] !== undefined);
  return (
    <ul class="legend">
      {kinds.map((kind) => (
        <li key={kind}>
          <span class="swatch" style={{ background: palette.fills[fillOf(kind, "", 0, -1, "kind")] ?? "" }} />
          {WORDS[kind]}
        </li>
      ))}
    </ul>
  );
}
