/** How far views go below the lines, and what is there, in words. */

import type { Depth, FrameKind } from "./server/contract";

export const DEPTHS: readonly Depth[] = ["line", "module", "library", "operator", "kernel"];

export const DEPTH_WORDS: Readonly<Record<Depth, string>> = {
  line: "Lines",
  module: "Modules",
  library: "Library lines",
  operator: "Operators",
  kernel: "Kernels",
};

export const KIND_WORDS: Readonly<Record<FrameKind, string>> = {
  line: "line",
  module: "module",
  library: "library line",
  operator: "operator",
  kernel: "kernel",
  other: "small parts",
};

/** A depth as it was kept, or another one where nothing of use was. */
export function keptDepth(kept: unknown, otherwise: Depth): Depth {
  return DEPTHS.find((depth) => depth === kept) ?? otherwise;
}
