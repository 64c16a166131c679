/** Charts over two axes: bars, lines, stepped areas, and several of them in one. */

import { Chart } from "./chart";
import { finite, seriesOf, shown, type DataTable } from "./data";
import { axisOf, labelStep, marksOf, type Drawn, type Kind, type Mark } from "./marks";
import { heightOf, type Options } from "./options";
import { canvas, colour, cut, svg, wordsOf } from "./svg";
import { axis, position, type Axis } from "./ticks";

const LEFT = 80;
const LETTER = 6.5;

interface Plot {
  readonly root: SVGSVGElement;
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  /** Where a row stands: the middle of its place, from `left`. */
  readonly middle: (row: number) => number;
  /** How wide a row's place is. */
  readonly place: number;
}

abstract class AxesChart extends Chart {
  private plot: Plot | undefined;
  private across: Axis | undefined;

  draw(table: DataTable, options: Options = {}): void {
    const drawn = seriesOf(table).map((series, at): Drawn => {
      const own = options.series?.[at];
      return { series, kind: this.kindOf(own?.type ?? options.seriesType), side: own?.targetAxisIndex === 1 ? 1 : 0 };
    });
    const marks = marksOf(drawn, options.isStacked ?? false);
    const sides = [axisOf(drawn, marks, 0), axisOf(drawn, marks, 1)] as const;
    this.plot = this.frame(table, options, sides[1] !== undefined);
    this.label(table, options);
    sides.forEach((side, at) => {
      if (side !== undefined) {
        this.ruler(side, at === 1, at === 0 ? options.vAxis?.title : undefined);
      }
    });
    const bars = drawn.filter(({ kind }) => kind === "bars");
    drawn.forEach((one, at) => {
      const side = sides[one.side];
      const ink = colour(at, options.colors);
      if (side !== undefined) {
        const lane = options.isStacked === true ? { at: 0, of: 1 } : { at: bars.indexOf(one), of: Math.max(bars.length, 1) };
        this.ink(table, one, marks[at] ?? [], side, ink, lane);
      }
    });
    this.legend(drawn, options);
    this.tell("ready");
  }

  /** What the page asks to know which stretch of the axis is seen. */
  getChartLayoutInterface(): { getChartAreaBoundingBox: () => { left: number; width: number }; getHAxisValue: (x: number) => number } {
    const { left = 0, width = 1 } = this.plot ?? {};
    const { low, high } = this.across ?? { low: 0, high: 1 };
    return {
      getChartAreaBoundingBox: () => ({ left, width }),
      getHAxisValue: (x) => low + ((x - left) / width) * (high - low),
    };
  }

  protected abstract kindOf(asked: string | undefined): Kind;

  private frame(table: DataTable, options: Options, hasRight: boolean): Plot {
    const { root, width, height } = canvas(this.container, heightOf(options), options.title ?? "Chart");
    const top = options.title === undefined || options.title === "" ? 10 : 30;
    if (top > 10) {
      root.append(svg("text", { x: LEFT, y: 18, "font-weight": "bold" }, options.title ?? ""));
    }
    const area = { left: LEFT, top, width: Math.max(width - LEFT - (hasRight ? LEFT : 20), 40), height: Math.max(height - top - 70, 40) };
    const isContinuous = table.columns[0]?.type === "number";
    const at = isContinuous ? table.rows.map((row) => finite(row[0]) ?? 0) : [];
    this.across = isContinuous ? axis(at.reduce((a, b) => Math.min(a, b), Infinity), at.reduce((a, b) => Math.max(a, b), -Infinity)) : undefined;
    const { across } = this;
    const place = area.width / Math.max(table.rows.length, 1);
    const middle = (row: number): number => (across === undefined ? (row + 0.5) * place : position(at[row] ?? 0, across, area.width));
    return { root, ...area, middle, place };
  }

  /** The lower axis. */
  private label(table: DataTable, options: Options): void {
    const plot = this.plot;
    if (plot === undefined) {
      return;
    }
    const { root, left, top, width, height } = plot;
    const bottom = top + height;
    root.append(svg("line", { x1: left, x2: left + width, y1: bottom, y2: bottom, stroke: "#333" }));
    const word = (x: number, text: string): void =>
      root.append(svg("text", { x, y: bottom + 16, "text-anchor": "middle", fill: "#444" }, cut(text, 24), svg("title", {}, text)));
    const { across } = this;
    if (across !== undefined) {
      across.ticks.forEach((tick) => word(left + position(tick, across, width), shown(tick)));
    } else {
      const words = table.rows.map((row) => shown(row[0]));
      const widest = words.reduce((most, text) => Math.max(most, Math.min(text.length, 24)), 0) * LETTER + 8;
      const step = labelStep(words.length, widest, width);
      words.forEach((text, row) => {
        if (row % step === 0) {
          word(left + plot.middle(row), text);
        }
      });
    }
    const title = options.hAxis?.title;
    if (title !== undefined && title !== "") {
      root.append(svg("text", { x: left + width / 2, y: bottom + 34, "text-anchor": "middle", "font-style": "italic" }, title));
    }
  }

  private ruler(side: Axis, isRight: boolean, title: string | undefined): void {
    const plot = this.plot;
    if (plot === undefined) {
      return;
    }
    const { root, left, top, width, height } = plot;
    for (const tick of side.ticks) {
      const y = top + height - position(tick, side, height);
      if (!isRight) {
        root.append(svg("line", { x1: left, x2: left + width, y1: y, y2: y, stroke: "#ddd" }));
      }
      const x = isRight ? left + width + 6 : left - 6;
      root.append(svg("text", { x, y: y + 4, "text-anchor": isRight ? "start" : "end", fill: "#444" }, shown(tick)));
    }
    if (title !== undefined && title !== "") {
      const middle = top + height / 2;
      root.append(svg("text", { x: 14, y: middle, transform: `rotate(-90 14 ${middle})`, "text-anchor": "middle", "font-style": "italic" }, title));
    }
  }

  private ink(table: DataTable, { series, kind }: Drawn, marks: readonly Mark[], side: Axis, ink: string, lane: { at: number; of: number }): void {
    const plot = this.plot;
    if (plot === undefined) {
      return;
    }
    const { root, left, top, height, place } = plot;
    const x = (row: number): number => left + plot.middle(row);
    const y = (value: number): number => top + height - position(value, side, height);
    const told = (row: number): string =>
      wordsOf(series.tooltips[row] ?? `${shown(table.rows[row]?.[0])}\n${series.label}: ${shown(series.values[row])}`);
    if (kind === "line") {
      const path = marks.map(({ row, top: value }, at) => `${at === 0 ? "M" : "L"}${x(row).toFixed(2)} ${y(value).toFixed(2)}`).join("");
      root.append(svg("path", { d: path, fill: "none", stroke: ink, "stroke-width": 2 }));
    }
    for (const { row, base, top: value } of marks) {
      const [from, to] = [y(Math.max(base, value)), y(Math.min(base, value))];
      const width = kind === "area" ? place : Math.min((place * 0.7) / lane.of, 120);
      const start = kind === "area" ? x(row) - width / 2 : x(row) + (lane.at - lane.of / 2) * width;
      const mark =
        kind === "line"
          ? svg("circle", { cx: x(row), cy: y(value), r: marks.length > 200 ? 1.5 : 3, fill: ink })
          : svg("rect", { x: start, y: from, width: Math.max(width, 0.5), height: Math.max(to - from, 0), fill: ink });
      mark.append(svg("title", {}, told(row)));
      this.offer(mark, row, series.column);
      root.append(mark);
    }
  }

  private legend(drawn: readonly Drawn[], options: Options): void {
    const plot = this.plot;
    if (plot === undefined || options.legend === "none") {
      return;
    }
    const { root, left, top, width, height } = plot;
    const letters = Math.max(Math.floor(width / Math.max(drawn.length, 1) / LETTER) - 4, 4);
    let x = left;
    drawn.forEach(({ series }, at) => {
      const words = cut(series.label, letters);
      const y = top + height + 50;
      root.append(
        svg("rect", { x, y: y - 10, width: 11, height: 11, fill: colour(at, options.colors) }),
        svg("text", { x: x + 16, y }, words, svg("title", {}, series.label)),
      );
      x += 28 + words.length * LETTER;
    });
  }
}

export class ColumnChart extends AxesChart {
  protected kindOf(): Kind {
    return "bars";
  }
}

export class LineChart extends AxesChart {
  protected kindOf(): Kind {
    return "line";
  }
}

export class SteppedAreaChart extends AxesChart {
  protected kindOf(): Kind {
    return "area";
  }
}

export class ComboChart extends AxesChart {
  protected kindOf(asked: string | undefined): Kind {
    return asked === "bars" ? "bars" : asked === "area" || asked === "steppedArea" ? "area" : "line";
  }
}
