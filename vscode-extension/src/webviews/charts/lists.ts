/** What needs no axes: shares of a whole as bars, spans in rows, tables. */

import { Chart, colour, html, wordsOf, type Options } from "./chart";
import { orderOf, sharesOf, shown, spansOf, type DataTable } from "./data";

export class PieChart extends Chart {
  draw(table: DataTable, options: Options = {}): void {
    const rows = sharesOf(table).map(({ row, label, share }) => {
      const percent = `${(100 * share).toFixed(1)} %`;
      const bar = html("i", { style: `background: ${colour(row, options.colors)}; width: ${(100 * share).toFixed(2)}%` });
      return html("li", { title: `${label}\n${percent}` }, html("span", {}, label), html("b", {}, percent), html("div", {}, bar));
    });
    const height = typeof options.height === "number" ? `max-height: ${options.height}px` : "";
    this.container.replaceChildren(html("strong", {}, options.title ?? ""), html("ul", { class: "deepscope-shares", style: height }, ...rows));
  }
}

export class Timeline extends Chart {
  draw(table: DataTable): void {
    const spans = spansOf(table);
    const low = spans.reduce((least, { start }) => Math.min(least, start), Infinity);
    const high = spans.reduce((most, { end }) => Math.max(most, end), -Infinity);
    const percent = (time: number): string => `${((100 * time) / (high - low || 1)).toFixed(3)}%`;
    const names = [...new Set(spans.map(({ name }) => name))];
    const rows = [...new Set(spans.map(({ label }) => label))];
    const bars = spans.map(({ label, name, tooltip, start, end }) => {
      const place = `left: ${percent(start - low)}; top: ${28 * rows.indexOf(label)}px; width: ${percent(end - start)}`;
      return html("span", { title: wordsOf(tooltip), style: `background: ${colour(names.indexOf(name))}; ${place}` }, name);
    });
    this.container.replaceChildren(html("div", { class: "deepscope-spans", style: `position: relative; height: ${28 * rows.length}px` }, ...bars), `${shown(low)} to ${shown(high)}`);
  }
}

export class Table extends Chart {
  draw(table: DataTable, options: Options = {}): void {
    this.show(table, options.sortColumn ?? -1, options.sortAscending ?? true);
  }

  private show(table: DataTable, column: number, isAscending: boolean): void {
    const head = table.columns.map(({ label, type }, at) => {
      const button = html("button", { type: "button" }, label + (at === column ? (isAscending ? " ▲" : " ▼") : ""));
      button.addEventListener("click", () => this.show(table, at, at === column ? !isAscending : type !== "number"));
      return html("th", { scope: "col" }, button);
    });
    const body = orderOf(table, column, isAscending).map((row) => html("tr", {}, ...table.columns.map((_, at) => cellOf(table, row, at))));
    const whole = html("table", {}, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...body));
    this.container.replaceChildren(html("div", { class: "deepscope-table" }, whole));
  }
}

function cellOf(table: DataTable, row: number, column: number): HTMLElement {
  const cell = table.rows[row]?.[column];
  const element = html("td", { class: typeof cell === "number" ? "number" : "" }, typeof cell === "string" ? wordsOf(cell) : shown(cell));
  element.style.cssText = table.styles.get(`${row}/${column}`) ?? ""; // of torch-tb-profiler's own code, never of a trace
  return element;
}
