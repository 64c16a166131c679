/** Which columns stand in the margin: as many as there is room for, and those that the reader chose. */

import type { JSX } from "preact";
import type { Column } from "../contract";
import type { Chosen } from "../parts/table/fit";
import { Menu } from "../parts/table/Menu";

interface Props {
  readonly columns: readonly Column[];
  readonly chosen: Chosen;
  readonly choose: (chosen: Chosen) => void;
}

/** Ticked is what is always shown, empty what never is; without a word a column is shown where there is room. */
export function ColumnsMenu({ columns, chosen, choose }: Props): JSX.Element {
  return (
    <Menu label="Columns" title="Which columns are shown" isActive={Object.keys(chosen).length > 0}>
      {() => (
        <>
          {columns.slice(1).map(({ key, title, help }) => (
            <label key={key} title={help}>
              <select
                aria-label={title}
                value={chosen[key] === undefined ? "room" : chosen[key] ? "always" : "never"}
                onChange={({ currentTarget: { value } }) => choose(changed(chosen, key, value))}
              >
                <option value="room">if it fits</option>
                <option value="always">always</option>
                <option value="never">never</option>
              </select>{" "}
              {title}
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
  );
}

function changed(chosen: Chosen, key: string, value: string): Chosen {
  const others = Object.entries(chosen).filter(([name]) => name !== key);
  return Object.fromEntries(value === "room" ? others : [...others, [key, value === "always"]]);
}
