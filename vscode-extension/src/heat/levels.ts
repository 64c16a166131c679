/** How hot a line looks: its level, the width of its bar, the picture in the gutter. */

export type Level = 1 | 2 | 3;
export const LEVELS: readonly Level[] = [1, 2, 3];

/** Bars are drawn in this many widths, so that few kinds of decoration are enough. */
export const BAR_WIDTH_PX = 120;

export function levelOf(share: number): Level {
  return share >= 0.2 ? 3 : share >= 0.05 ? 2 : 1;
}

/** The bar's width: the line's share of `BAR_WIDTH_PX`, never too thin to be seen. */
export function barWidth(share: number): number {
  return Math.max(2, Math.round(Math.min(1, share) * BAR_WIDTH_PX));
}

/** Level by height as well as by colour, so that it can be told without colours. */
export function gutterSvg(level: Level, colour: string): string {
  const height = 4 + level * 3;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">` +
    `<rect x="6" y="${15 - height}" width="4" height="${height}" rx="1" fill="${colour}"/></svg>`
  );
}

/** The gutter cannot use theme colours; these stand out on light, dark and both high-contrast backgrounds. */
export const GUTTER_COLOURS: Readonly<Record<Level, { readonly dark: string; readonly light: string }>> = {
  1: { dark: "#f7c948", light: "#b7791f" },
  2: { dark: "#ff9f43", light: "#c05621" },
  3: { dark: "#ff5c5c", light: "#c53030" },
};
