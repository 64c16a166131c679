/** Shares of a whole, as a ring with a legend. */

import { Chart } from "./chart";
import type { DataTable } from "./data";
import { heightOf, type Options } from "./options";
import { slicesOf, type Slice } from "./rows";
import { canvas, colour, cut, svg, wordsOf } from "./svg";

const ROW = 18;

export class PieChart extends Chart {
  draw(table: DataTable, options: Options = {}): void {
    const { root, width, height } = canvas(this.container, heightOf(options), options.title ?? "Shares");
    const top = options.title === undefined || options.title === "" ? 4 : 26;
    if (top > 4) {
      root.append(svg("text", { x: 4, y: 16, "font-weight": "bold" }, options.title ?? ""));
    }
    const slices = slicesOf(table);
    const hasLegend = options.legend !== "none";
    const radius = Math.max(Math.min(height - top - 8, hasLegend ? width * 0.45 : width - 8) / 2, 8);
    const [x, y] = [hasLegend ? radius + 8 : width / 2, top + radius];
    slices.forEach((slice) => {
      const path = svg(
        "path",
        { d: ring(x, y, radius, radius * (options.pieHole ?? 0), slice.from, slice.to), fill: colour(slice.row, options.colors), stroke: "#fff", "fill-rule": "evenodd" },
        svg("title", {}, `${wordsOf(slice.tooltip)}\n${percent(slice)}`),
      );
      this.offer(path, slice.row, 1);
      root.append(path);
    });
    if (hasLegend) {
      this.legend(root, slices, { x: 2 * radius + 24, y: top, width, height }, options);
    }
    this.tell("ready");
  }

  private legend(root: SVGSVGElement, slices: readonly Slice[], box: { x: number; y: number; width: number; height: number }, options: Options): void {
    const room = Math.max(Math.floor((box.height - box.y) / ROW), 1);
    const named = slices.length > room ? slices.slice(0, room - 1) : slices;
    const letters = Math.max(Math.floor((box.width - box.x - 18) / 6.5) - 9, 3);
    named.forEach((slice, at) => {
      const y = box.y + at * ROW;
      root.append(
        svg("rect", { x: box.x, y: y + 2, width: 11, height: 11, fill: colour(slice.row, options.colors) }),
        svg("text", { x: box.x + 16, y: y + 12 }, `${cut(slice.label, letters)}  ${percent(slice)}`, svg("title", {}, slice.label)),
      );
    });
    if (named.length < slices.length) {
      root.append(svg("text", { x: box.x + 16, y: box.y + named.length * ROW + 12 }, `and ${slices.length - named.length} more`));
    }
  }
}

function percent({ from, to }: Slice): string {
  return `${((to - from) * 100).toFixed(1)} %`;
}

/** The outline of a part of a ring; of the whole one in two halves, since an arc has two ends. */
function ring(x: number, y: number, outer: number, inner: number, from: number, to: number): string {
  if (to - from > 0.9999) {
    return `${ring(x, y, outer, inner, 0, 0.5)} ${ring(x, y, outer, inner, 0.5, 1)}`;
  }
  const at = (radius: number, turn: number): string =>
    `${(x + radius * Math.sin(turn * 2 * Math.PI)).toFixed(2)} ${(y - radius * Math.cos(turn * 2 * Math.PI)).toFixed(2)}`;
  const large = to - from > 0.5 ? 1 : 0;
  return `M${at(outer, from)}A${outer} ${outer} 0 ${large} 1 ${at(outer, to)}L${at(inner, to)}A${inner} ${inner} 0 ${large} 0 ${at(inner, from)}Z`;
}
