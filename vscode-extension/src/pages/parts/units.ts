/** A counter's value in words: the units are those of `deepscope report --by counter`. */

import type { CounterUnit } from "../contract";
import { bytes, count } from "../words";

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
