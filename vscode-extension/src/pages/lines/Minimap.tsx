/** Where in a file its hot lines are. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { FileText } from "../contract";
import { heat } from "./shade";

const MARKS = 400;

interface Props {
  readonly of: FileText;
  readonly heatAt: number;
  /** Rows of the view beside it. */
  readonly count: number;
  /** The row of a line. */
  readonly at: (line: number) => number;
  readonly show: (line: number) => void;
}

export function Minimap({ of, heatAt, count, at, show }: Props): JSX.Element {
  const marks = useMemo(() => {
    const largest = of.largest[heatAt] ?? 0;
    return of.rows
      .map(({ line, values }) => ({ line, shade: heat(values[heatAt] ?? 0, largest), top: at(line) / Math.max(count, 1) }))
      .filter(({ shade }) => shade > 0)
      .sort((one, other) => other.shade - one.shade)
      .slice(0, MARKS);
  }, [of, heatAt, count]);
  return (
    <div class="minimap" aria-hidden title="Hot lines: a click leads there">
      {marks.map(({ line, shade, top }) => (
        <i key={line} style={{ top: `${100 * top}%`, "--shade": shade }} onClick={() => show(line)} />
      ))}
    </div>
  );
}
