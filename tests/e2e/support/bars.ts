/** Runs in the page: the box that the extension puts at the end of a line; width 0 where there is none. */
export function barOf(line: Element): { readonly width: number; readonly colour: string } {
  for (const span of line.querySelectorAll("span")) {
    const style = getComputedStyle(span, "::after");
    if (style.backgroundColor !== "rgba(0, 0, 0, 0)" && style.content === '""') {
      return { width: Number.parseFloat(style.width), colour: style.backgroundColor };
    }
  }
  return { width: 0, colour: "" };
}

/** Runs in the page: the widths of the extension's marks at the gutter among a line's decorations. */
export function marksAmong(decorations: readonly Element[]): number[] {
  const widths = decorations.map((one) => getComputedStyle(one)).filter((style) => style.borderLeftStyle === "solid");
  return widths.filter((style) => style.borderRightWidth === "0px").map((style) => Number.parseFloat(style.borderLeftWidth));
}
