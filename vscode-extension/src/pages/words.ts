/** Values in words: three digits and a unit, in the same way as the terminal and the editor. */

import type { CellKind, CounterUnit } from "./contract";

const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]] as const;
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DECIMAL = ["", "k", "M", "G", "T", "P", "E"];

/** A name as it is, but that what steers or turns the text around it is a visible escape. */
export function visible(name: string): string {
  return name.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`);
}

/** `12.4 ms`: three digits; `0` for none. */
export function duration(ns: number): string {
  // 999.6 would read as 1000: it goes to the larger unit.
  const [size, unit] = TIMES.find(([one]) => ns >= one * 0.9995) ?? [1, "ns"];
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

/** `30.1 ms, 91 %`: a time and its share of the whole. */
export function sumWords(sumNs: number, wholeNs: number): string {
  return `${duration(sumNs)}, ${share(wholeNs > 0 ? sumNs / wholeNs : 0)}`;
}

/** `1.50 MiB`. */
export function bytes(size: number): string {
  return scaled(size, 1024, BINARY);
}

/** `312 GFLOP`. */
function flops(count: number): string {
  return `${scaled(count, 1000, DECIMAL)}FLOP`;
}

function scaled(given: number, base: number, units: readonly string[]): string {
  let [value, at] = [Math.abs(given), 0];
  while (value >= base - 0.5 && at < units.length - 1) {
    [value, at] = [value / base, at + 1];
  }
  const digits = at === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return given === 0 ? "0" : `${given < 0 ? "-" : ""}${value.toFixed(digits)} ${units[at] ?? ""}`;
}

/** A count: whole, or with as many decimals as say something. */
export function count(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2 });
}

/** A time that may be negative. */
export function time(ns: number): string {
  return ns < 0 ? `-${duration(-ns)}` : duration(ns);
}

/** A change of a time: `+1.2 ms`. */
export function signed(ns: number): string {
  return ns > 0 ? `+${time(ns)}` : time(ns);
}

/** A value of a kind. */
export function words(value: string | number | null, kind: CellKind): string {
  if (value === null || typeof value === "string") {
    return value ?? "";
  }
  switch (kind) {
    case "time":
      return time(value);
    case "bytes":
      return bytes(value);
    case "share":
      return share(value);
    case "flops":
      return flops(value);
    case "rate":
      return `${flops(value)}/s`;
    case "bandwidth":
      return `${scaled(value, 1000, DECIMAL)}B/s`;
    case "count":
      return count(value);
    case "text":
    case "place":
      return String(value);
  }
}

/** A counter's value: the units are those of `deepscope report --by counter`. */
export function valueWords(value: number, unit: CounterUnit): string {
  switch (unit) {
    case "bytes":
      return bytes(value);
    case "percent":
      return `${count(value)} %`;
    case "bytesPerSecond":
      return value === 0 ? "0 B/s" : `${bytes(value)}/s`;
    case "perSecond":
      return `${count(value)}/s`;
    case "watts":
      return `${count(value)} W`;
    case "megahertz":
      return `${count(value)} MHz`;
    case "celsius":
      return `${count(value)} °C`;
    case "count":
      return count(value);
  }
}
