/** Spans in rows, one row a label. */

import { Chart } from "./chart";
import { shown, type DataTable } from "./data";
import { heightOf, type Options } from "./options";
import { spansOf } from "./rows";
import { canvas, colour, cut, svg, wordsOf } from "./svg";
import { axis, position } from "./ticks";

const ROW = 30;

export class Timeline extends Chart {
  draw(table: DataTable, options: Options = {}): void {
    const spans = spansOf(table);
    const labels = [...new Set(spans.map(({ label }) => label))];
    const { root, width, height } = canvas(this.container, Math.max(heightOf(options) ?? 0, labels.length * ROW + 30), "Timeline");
    const across = axis(
      spans.reduce((least, { start }) => Math.min(least, start), Infinity),
      spans.reduce((most, { end }) => Math.max(most, end), -Infinity),
    );
    const names = [...new Set(spans.map(({ name }) => name))];
    const ink = new Map(names.map((name, at) => [name, colour(at, options.colors)]));
    const rows = new Map(labels.map((label, at) => [label, at]));
    for (const span of spans) {
      const x = position(span.start, across, width);
      const wide = Math.max(position(span.end, across, width) - x, 1);
      const y = (rows.get(span.label) ?? 0) * ROW + 3;
      const bar = svg("rect", { x, y, width: wide, height: ROW - 6, fill: ink.get(span.name) ?? "#555", stroke: "#fff" }, svg("title", {}, wordsOf(span.tooltip)));
      this.offer(bar, span.row, 1);
      root.append(bar);
      const letters = Math.floor((wide - 8) / 6.5);
      if (letters >= 3) {
        root.append(svg("text", { x: x + 4, y: y + 16, fill: "#fff", "pointer-events": "none" }, cut(span.name, letters)));
      }
    }
    const bottom = Math.min(labels.length * ROW + 16, height - 4);
    for (const tick of across.ticks.filter((at) => at >= across.low && at < across.high)) {
      root.append(svg("text", { x: position(tick, across, width) + 2, y: bottom, fill: "#444" }, shown(tick)));
    }
    this.tell("ready");
  }
}
