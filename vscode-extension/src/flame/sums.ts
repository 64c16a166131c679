/**
 * The time of several boxes in words. Each single box comes with words from the server. Only the page knows which boxes a
 * search finds, so it words their sum itself, in the server's way: `test/durations.json` holds both to it.
 */

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]] as const;

/** `30.1 ms, 91 %`: a sum and its share of the whole. */
export function sumWords(sumNs: number, wholeNs: number): string {
  return `${duration(sumNs)}, ${share(wholeNs > 0 ? sumNs / wholeNs : 0)}`;
}

/** `12.4 ms`: three digits; `0` for none. */
export function duration(ns: number): string {
  // 999.6 would read as 1000: it goes to the larger unit.
  const [size, unit] = UNITS.find(([one]) => ns >= one * 0.9995) ?? [1, "ns"];
  const value = ns / size;
  const isWhole = Number.isInteger(value) && value < 1000;
  const digits = isWhole || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return ns === 0 ? "0" : `${value.toFixed(digits)} ${unit}`;
}

/** `38 %`, `4.2 %`, `<0.1 %`. */
export function share(ratio: number): string {
  const percent = 100 * ratio;
  if (percent === 0) {
    return "0 %";
  }
  return percent < 0.05 ? "<0.1 %" : `${percent.toFixed(percent >= 9.95 ? 0 : 1)} %`;
}
