/** What stands above a table: looking for words, filters, columns, copying. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Table } from "../../contract";
import { useCopy } from "../useCopy";
import type { Separator } from "./copy";
import type { Chosen } from "./fit";
import { FilterMenu } from "./FilterMenu";
import { Menu } from "./Menu";
import type { Rows } from "./useRows";

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
      {!isShort && <Search wanted={rows.wanted} look={rows.look} />}
      {!isShort && <FilterMenu of={of} filters={rows.filters} set={rows.setFilters} />}
      <Menu label={shown.length < of.columns.length ? `Columns · ${shown.length} of ${of.columns.length}` : "Columns"} title="Which columns are shown">
        {() => (
          <>
            {of.columns.slice(1).map((column) => (
              <label key={column.key} title={column.help}>
                <input
                  type="checkbox"
                  checked={shown.includes(column.key)}
                  onChange={(event) => choose({ ...chosen, [column.key]: event.currentTarget.checked })}
                />{" "}
                {column.title}
              </label>
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

function Search({ wanted, look }: { readonly wanted: string; readonly look: (wanted: string) => void }): JSX.Element {
  const [text, setText] = useState(wanted);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => setText(wanted), [wanted]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const typed = (next: string): void => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => look(next), TYPING_MS);
  };
  return <input type="search" class="search" placeholder="Find" aria-label="Find rows" value={text} onInput={(event) => typed(event.currentTarget.value)} />;
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
