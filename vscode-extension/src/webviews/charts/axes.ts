/** Charts over two axes, drawn by uPlot: bars, lines and stepped areas, stacked or beside each other. */

import uPlot from "uplot";
import { Chart, colour, type Options } from "./chart";
import { finite, seriesOf, shown, stacked, type DataTable } from "./data";

const HEIGHT = 300;
/** What title and legend take of the height that is asked for. */
const AROUND = 80;
const LONGEST_LABEL = 24;

type Kind = "bars" | "line" | "area";

abstract class AxesChart extends Chart {
  protected abstract readonly kind: Kind;

  draw(table: DataTable, options: Options = {}): void {
    const series = seriesOf(table);
    const kinds = series.map((_, at) => (options.series?.[at]?.type === "bars" ? "bars" : this.kind));
    const isStacked = options.isStacked === true && !kinds.includes("line");
    const heights = isStacked ? stacked(series) : series.map(({ values }) => values);
    const bars = kinds.filter((kind) => kind === "bars").length;
    const isRight = (at: number): boolean => options.series?.[at]?.targetAxisIndex === 1;
    const drawn = series.map(({ label, values }, at): uPlot.Series => {
      const ink = colour(at, options.colors);
      return {
        label,
        scale: isRight(at) ? "right" : "y",
        stroke: ink,
        value: (_, __, ___, row) => (row === null ? "" : shown(values[row])),
        ...(kinds[at] === "line" ? { width: 2 } : { width: 0, fill: ink, points: { show: false }, paths: barsOf(kinds[at] ?? "bars", isStacked ? 1 : bars, at) }),
      };
    });
    const isContinuous = table.columns[0]?.type === "number";
    const rows = table.rows.map((row, at) => (isContinuous ? (finite(row[0]) ?? 0) : at));
    const label = (at: number): string => (isContinuous ? shown(at) : shown(table.rows[at]?.[0]));
    // What lies on all others is drawn first, and they over it.
    const order = series.map((_, at) => (isStacked ? series.length - 1 - at : at));
    this.container.replaceChildren();
    const plot = new uPlot(
      {
        title: options.title ?? "",
        width: this.container.clientWidth || 600,
        height: Math.max((typeof options.height === "number" ? options.height : HEIGHT) - AROUND, AROUND),
        scales: { x: isContinuous ? { time: false } : { time: false, range: [-0.5, rows.length - 0.5] }, y: fromZero, right: fromZero },
        axes: [
          {
            label: options.hAxis?.title ?? "",
            ...(isContinuous ? {} : { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }),
            values: (_, ticks) => ticks.map((tick) => label(tick).slice(0, LONGEST_LABEL)),
            space: isContinuous ? 60 : Math.min(Math.max(...rows.map((at) => label(at).length), 4), LONGEST_LABEL) * 8,
          },
          { label: options.vAxis?.title ?? "", size: 80, values: (_, ticks) => ticks.map(shown) },
          // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- uPlot's enum is not there at run time
          { scale: "right", side: 1, size: 80, show: series.some((_, at) => isRight(at)), grid: { show: false }, values: (_, ticks) => ticks.map(shown) },
        ],
        series: [{ label: table.columns[0]?.label ?? "", value: (_, at) => label(at) }, ...order.flatMap((at) => drawn[at] ?? [])],
      },
      [rows, ...order.map((at) => [...(heights[at] ?? [])])],
      this.container,
    );
    plot.over.addEventListener("click", () => {
      if (plot.cursor.idx != null) {
        this.select(plot.cursor.idx, series[0]?.column ?? 1);
      }
    });
  }

}

const fromZero: uPlot.Scale = { range: (_, low, high) => (low === high && low === 0 ? [0, 1] : uPlot.rangeNum(Math.min(low, 0), Math.max(high, 0), 0.1, true)) };

/** Bars fill what place they have; of several beside each other two have room, left and right of the middle. */
function barsOf(kind: Kind, count: number, at: number): uPlot.Series.PathBuilder {
  const size = kind === "area" ? 1 : 0.7 / Math.min(count, 2);
  const align = kind === "area" || count < 2 ? 0 : at % 2 === 0 ? -1 : 1;
  return (...given) => uPlot.paths.bars?.({ size: [size, kind === "area" ? Infinity : 120], align })(...given) ?? null;
}

/** A class of charts whose series are of a kind, where the options ask for no other. */
export function axesChart(kind: Kind): new (container: HTMLElement) => AxesChart {
  return class extends AxesChart {
    protected readonly kind = kind;
  };
}
