/** What the colours mean. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { SliceKind, Timeline } from "../contract";
import { fillOf, paletteOf, watchTheme, type Palette } from "./palette";

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
  const [palette, setPalette] = useState<Palette>(() => paletteOf(document.documentElement));
  useEffect(() => watchTheme(() => setPalette(paletteOf(document.documentElement))), []);
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
