/** The state of a table as words of the address: its order, what is looked for, which rows are left, the chosen row. */

import { decoded } from "../../app/address";
import type { CellKind } from "../../contract";
import type { Cell } from "./rows";

export interface Order {
  readonly id: string;
  readonly desc: boolean;
}

/** Some words of a text column, or the ends of a number column's range. */
export type Condition = { readonly words: readonly string[] } | { readonly least: number | undefined; readonly most: number | undefined };

export interface Filter {
  readonly id: string;
  readonly value: Condition;
}

/** `-self_device_ns,name`: the first counts most, `-` for the largest first. */
export function orderOf(word: string, known: ReadonlySet<string>): Order[] {
  return word
    .split(",")
    .map((one) => ({ id: one.replace(/^-/, ""), desc: one.startsWith("-") }))
    .filter(({ id }) => known.has(id));
}

export function orderWord(orders: readonly Order[]): string {
  return orders.map(({ id, desc }) => `${desc ? "-" : ""}${id}`).join(",");
}

/** `kind:memcpy|memset;calls:100..`, each word encoded as an address has it. */
export function filtersOf(word: string, kinds: ReadonlyMap<string, CellKind>): Filter[] {
  return word.split(";").flatMap((one): Filter[] => {
    const colon = one.indexOf(":");
    const [id, said] = [one.slice(0, colon), one.slice(colon + 1)];
    const kind = kinds.get(id);
    if (colon < 0 || kind === undefined) {
      return [];
    }
    if (kind === "text" || kind === "place") {
      return [{ id, value: { words: said.split("|").map(decoded) } }];
    }
    const [least, most] = said.split("..").map(numeric);
    return least === undefined && most === undefined ? [] : [{ id, value: { least, most } }];
  });
}

export function filtersWord(filters: readonly Filter[]): string {
  return filters
    .map(({ id, value }) => `${id}:${"words" in value ? value.words.map(encodeURIComponent).join("|") : `${value.least ?? ""}..${value.most ?? ""}`}`)
    .join(";");
}

function numeric(word: string | undefined): number | undefined {
  const value = Number(word);
  return word === undefined || word.trim() === "" || !Number.isFinite(value) ? undefined : value;
}

/** Whether a cell meets a condition; what is not known is in no range. */
export function meets(cell: Cell, condition: Condition): boolean {
  if ("words" in condition) {
    return condition.words.includes(String(cell ?? ""));
  }
  const { least, most } = condition;
  return typeof cell === "number" && (least === undefined || cell >= least) && (most === undefined || cell <= most);
}

const UNITS: Readonly<Record<string, number>> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, "%": 0.01, b: 1 };
const LETTERS = "kmgtpe";

/** What a reader wrote as an end of a range: `1.5ms`, `10 %`, `64 KiB`, `2G`; undefined for none. */
export function amount(text: string, kind: CellKind): number | undefined {
  const [, digits = "", unit = ""] = /^\s*([-+]?[\d.,]+(?:e[-+]?\d+)?)\s*([a-zµ%]*)/i.exec(text) ?? [];
  const value = numeric(digits.replaceAll(",", ""));
  if (value === undefined) {
    return undefined;
  }
  const word = unit.toLowerCase();
  if (kind === "time" || kind === "share") {
    return value * (UNITS[word] ?? (kind === "share" ? 0.01 : 1e6)); // a bare number: percent, milliseconds
  }
  const power = LETTERS.indexOf(word.charAt(0)) + 1;
  const base = kind === "bytes" ? 1024 : 1000;
  return value * base ** (word === "" ? 0 : power);
}
