/** How far views go below the lines, as the reader chose it. */

import { depth, type Depth } from "./server/contract";
import { readOr } from "./shape";

export { DEPTH_WORDS, DEPTHS, KIND_WORDS } from "./depthWords";

/** A depth as it was kept, or another one where nothing of use was. */
export function keptDepth(kept: unknown, otherwise: Depth): Depth {
  return readOr(depth, kept) ?? otherwise;
}
