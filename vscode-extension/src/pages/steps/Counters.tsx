/** What the machine did meanwhile: a small chart for each counter, its mean step by step, and all of them as a table. */

import type { JSX } from "preact";
import type { CounterChart, Table } from "../contract";
import { Chart } from "../parts/Chart";
import { DataTable } from "../parts/DataTable";
import { valueWords } from "../parts/units";
import { stepsWords } from "./stepsWords";

interface Props {
  readonly charts: readonly CounterChart[];
  readonly table: Table;
}

const HEIGHT = 120;
const TONES = 8;

export function Counters({ charts, table }: Props): JSX.Element | null {
  return table.rows.length === 0 ? null : (
    <section>
      <h2>{table.title}</h2>
      {charts.length > 0 && (
        <div class="counters">
          {charts.map((chart) => (
            <Counter key={chart.title} of={chart} />
          ))}
        </div>
      )}
      <DataTable of={table} word="counters." />
    </section>
  );
}

function Counter({ of }: { readonly of: CounterChart }): JSX.Element {
  const last = of.steps.at(-1) ?? 0;
  return (
    <div class="counter">
      <h3 title={of.help}>{of.title}</h3>
      <Chart
        label={`${of.title}, the mean in each ${of.end - last === 1 ? "step" : `${of.end - last} steps`}`}
        // The last value holds to the end of its steps.
        at={[...of.steps, of.end]}
        series={of.lines.map(({ label, values }, place) => ({ label, values: [...values, values.at(-1) ?? null], colour: `--tone${place % TONES}` }))}
        whole={[of.steps[0] ?? 0, of.end]}
        height={HEIGHT}
        words={(value) => valueWords(value, of.unit)}
        atWords={(at) => stepsWords(of, at)}
        axisWords={(at) => (at < of.end ? `step ${at}` : "")}
        base={of.unit === "bytes" || of.unit === "bytesPerSecond" ? 2 : 10}
        isCounted
      />
      {of.leftOut > 0 && <p class="muted">{of.leftOut} more in the table</p>}
    </div>
  );
}
