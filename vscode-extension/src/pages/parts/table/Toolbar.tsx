/** What stands above a table: looking for words, filters by words and ranges, columns, copying. */

import type { ComponentChildren, JSX } from "preact";
import type { Column, Table } from "../../contract";
import { useCopy } from "../browser";
import { isNumber, type Separator } from "./rows";
import type { Chosen } from "./columns";
import { Check, Menu, Search } from "../Controls";
import type { Rows } from "./useRows";
import { words } from "../../words";
import { amount, type Condition, type Filter } from "./state";

const TYPING_MS = 150;

interface Props {
  readonly of: Table;
  readonly rows: Rows;
  readonly shown: readonly string[];
  readonly chosen: Chosen;
  readonly choose: (chosen: Chosen) => void;
  /** The rows that are shown, as text. */
  readonly textOf: (separator: Separator) => string;
  readonly tools: ComponentChildren;
}

export function Toolbar({ of, rows, shown, chosen, choose, textOf, tools }: Props): JSX.Element {
  const isShort = of.rows.length < 8;
  return (
    <div class="tabletools">
      {tools}
      {!isShort && <Search label="Find rows" placeholder="Find" value={rows.wanted} look={rows.look} pauseMs={TYPING_MS} />}
      {!isShort && <FilterMenu of={of} filters={rows.filters} set={rows.setFilters} />}
      <Menu label={shown.length < of.columns.length ? `Columns · ${shown.length} of ${of.columns.length}` : "Columns"} title="Which columns are shown">
        {() => (
          <>
            {of.columns.slice(1).map((column) => (
              <Check key={column.key} title={column.help} words={column.title} isOn={shown.includes(column.key)} turn={(isOn) => choose({ ...chosen, [column.key]: isOn })} />
            ))}
            {Object.keys(chosen).length > 0 && (
              <button type="button" onClick={() => choose({})}>
                Choose by width
              </button>
            )}
          </>
        )}
      </Menu>
      {rows.isTree && (
        <span class="pair">
          <button type="button" title="Open every row" onClick={() => rows.setAllOpen(true)}>
            Expand
          </button>
          <button type="button" title="Close every row" onClick={() => rows.setAllOpen(false)}>
            Collapse
          </button>
        </span>
      )}
      <Copy textOf={textOf} />
    </div>
  );
}

function Copy({ textOf }: Pick<Props, "textOf">): JSX.Element {
  const [outcome, copy] = useCopy();
  return (
    <Menu label={outcome === "" ? "Copy" : outcome} title="Copy the rows that are shown">
      {() => (
        <>
          <button type="button" onClick={() => copy(textOf("\t"))}>
            For a spreadsheet (TSV)
          </button>
          <button type="button" onClick={() => copy(textOf(","))}>
            As CSV
          </button>
        </>
      )}
    </Menu>
  );
}

/** Of a column with more different words none can be chosen. */
const MOST_WORDS = 16;

interface FilterProps {
  readonly of: Table;
  readonly filters: readonly Filter[];
  readonly set: (filters: readonly Filter[]) => void;
}

function FilterMenu({ of, filters, set }: FilterProps): JSX.Element {
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

interface ConditionProps {
  readonly column: Column;
  readonly value: Condition | undefined;
  readonly set: (value: Condition | undefined) => void;
}

function Words({ column, found, value, set }: ConditionProps & { readonly found: readonly string[] }): JSX.Element | null {
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
          <Check key={word} words={word === "" ? "(none)" : word} isOn={chosen.includes(word)} turn={() => toggle(word)} />
        ))}
      </div>
    </fieldset>
  );
}

function Range({ column, value, set }: ConditionProps): JSX.Element {
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
