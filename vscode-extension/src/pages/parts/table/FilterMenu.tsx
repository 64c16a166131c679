/** Which rows are left: by the words of text columns, by ranges of numbers. */

import type { JSX } from "preact";
import type { Column, Table } from "../../contract";
import { words } from "../../words";
import { Menu } from "./Menu";
import { isNumber } from "./rows";
import { amount, type Condition, type Filter } from "./state";

/** Of a column with more different words none can be chosen. */
const MOST_WORDS = 16;

interface Props {
  readonly of: Table;
  readonly filters: readonly Filter[];
  readonly set: (filters: readonly Filter[]) => void;
}

export function FilterMenu({ of, filters, set }: Props): JSX.Element {
  const change = (id: string, value: Condition | undefined): void =>
    set([...filters.filter((one) => one.id !== id), ...(value === undefined ? [] : [{ id, value }])]);
  const valueOf = ({ key }: Column): Condition | undefined => filters.find(({ id }) => id === key)?.value;
  return (
    <Menu label={filters.length > 0 ? `Filter · ${filters.length}` : "Filter"} title="Which rows are shown" isActive={filters.length > 0}>
      {() => (
        <>
          {of.columns.map((column, at) =>
            isNumber(column) ? null : (
              <Words key={column.key} column={column} found={wordsOf(of, at)} value={valueOf(column)} set={(next) => change(column.key, next)} />
            ),
          )}
          {of.columns.filter(isNumber).map((column) => (
            <Range key={column.key} column={column} value={valueOf(column)} set={(next) => change(column.key, next)} />
          ))}
          {filters.length > 0 && (
            <button type="button" onClick={() => set([])}>
              Show all rows
            </button>
          )}
        </>
      )}
    </Menu>
  );
}

/** The different words of a column, where they are few. */
function wordsOf(table: Table, at: number): readonly string[] {
  const found = new Set<string>();
  for (const row of table.rows) {
    found.add(String(row[at] ?? ""));
    if (found.size > MOST_WORDS) {
      return [];
    }
  }
  return found.size > 1 ? [...found].sort() : [];
}

interface OneProps {
  readonly column: Column;
  readonly value: Condition | undefined;
  readonly set: (value: Condition | undefined) => void;
}

function Words({ column, found, value, set }: OneProps & { readonly found: readonly string[] }): JSX.Element | null {
  if (found.length === 0) {
    return null;
  }
  const chosen = value !== undefined && "words" in value ? value.words : [];
  const toggle = (word: string): void => {
    const next = chosen.includes(word) ? chosen.filter((one) => one !== word) : [...chosen, word];
    set(next.length === 0 ? undefined : { words: next });
  };
  return (
    <fieldset>
      <legend>{column.title}</legend>
      <div class="choices">
        {found.map((word) => (
          <label key={word}>
            <input type="checkbox" checked={chosen.includes(word)} onChange={() => toggle(word)} /> {word === "" ? "(none)" : word}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function Range({ column, value, set }: OneProps): JSX.Element {
  const ends: { least: number | undefined; most: number | undefined } =
    value !== undefined && "least" in value ? value : { least: undefined, most: undefined };
  const end = (name: "least" | "most", label: string): JSX.Element => (
    <input
      type="text"
      size={8}
      aria-label={`${column.title}: ${label}`}
      placeholder={label}
      value={ends[name] === undefined ? "" : words(ends[name], column.kind)}
      onChange={(event) => {
        const next = { ...ends, [name]: amount(event.currentTarget.value, column.kind) };
        set(next.least === undefined && next.most === undefined ? undefined : next);
      }}
    />
  );
  return (
    <div class="range">
      <span>{column.title}</span>
      {end("least", "from")}
      {end("most", "to")}
    </div>
  );
}
