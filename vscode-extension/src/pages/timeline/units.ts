/** A counter's value in words. */

import type { Unit } from "../contract";
import { bytes, count } from "../words";

export function valueWords(value: number, unit: Unit): string {
  switch (unit) {
    case "bytes":
      return bytes(value);
    case "percent":
      return `${count(value)} %`;
    case "count":
      return count(value);
  }
}
