/** A comparison's table as what its bars draw. */

import type { Compared, Table } from "../contract";

export interface Change {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly changeNs: number;
  readonly lowNs: number | null;
  readonly highNs: number | null;
  readonly verdict: string;
}

/** The rows beyond noise, which stand first. */
export function withoutNoise({ rows: table, beyondNoise }: Compared): Table {
  return { ...table, rows: table.rows.slice(0, beyondNoise), places: table.places.slice(0, beyondNoise), leftOut: 0 };
}

/** The rows, the largest changes first. */
export function changesOf({ columns, rows, places, files }: Table): Change[] {
  const at = Object.fromEntries(columns.map(({ key }, place) => [key, place]));
  const numeric = (row: Table["rows"][number], key: string): number | null => {
    const value = row[at[key] ?? -1];
    return typeof value === "number" ? value : null;
  };
  return rows
    .map((row, place) => {
      const [file = -1, line = 0] = places[place] ?? [];
      return {
        name: String(row[0] ?? ""),
        file: files[file] ?? "",
        line,
        changeNs: numeric(row, "change_ns") ?? 0,
        lowNs: numeric(row, "low_ns"),
        highNs: numeric(row, "high_ns"),
        verdict: String(row[at["verdict"] ?? -1] ?? ""),
      };
    })
    .sort((one, other) => Math.abs(other.changeNs) - Math.abs(one.changeNs));
}

/** A scale with 0 in it: from a value to a place between 0 and 1. */
export function scaleOf(values: readonly number[]): (value: number) => number {
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  const span = most - least || 1;
  return (value) => Math.min(Math.max((value - least) / span, 0), 1);
}
