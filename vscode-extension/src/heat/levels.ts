/** How hot a line looks: its level, the widths of its bar and its mark. */

export type Level = 1 | 2 | 3;
export const LEVELS: readonly Level[] = [1, 2, 3];

/** Bars are drawn in this many widths, so that few kinds of decoration are enough. */
const BAR_WIDTH_PX = 120;

export function levelOf(share: number): Level {
  return share >= 0.2 ? 3 : share >= 0.05 ? 2 : 1;
}

/** The bar's width: the line's share of `BAR_WIDTH_PX`, never too thin to be seen. */
export function barWidth(share: number): number {
  return Math.max(2, Math.round(Math.min(1, share) * BAR_WIDTH_PX));
}

/** The level is shown by width as well as by colour, for those who see no colours. */
export function markWidth(level: Level): number {
  return 1 + level;
}
