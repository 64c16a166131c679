/** A table in pages, sorted by a click on a column's name. */

import { Chart } from "./chart";
import { shown, type DataTable } from "./data";
import type { Options } from "./options";
import { orderOf } from "./rows";
import { html, wordsOf } from "./svg";

export class Table extends Chart {
  draw(table: DataTable, options: Options = {}): void {
    let sorted = { column: options.sortColumn ?? -1, isAscending: options.sortAscending ?? true };
    let page = 0;
    const size = options.page === "enable" ? (options.pageSize ?? 10) : Infinity;
    const show = (): void => {
      const order = orderOf(table, sorted.column, sorted.isAscending);
      const pages = Math.max(1, Math.ceil(order.length / size));
      page = Math.min(Math.max(page, 0), pages - 1);
      const head = table.columns.map((column, at) => {
        const mark = at === sorted.column ? (sorted.isAscending ? " ▲" : " ▼") : "";
        const button = html("button", { type: "button" }, column.label + mark);
        button.addEventListener("click", () => {
          sorted = { column: at, isAscending: at === sorted.column ? !sorted.isAscending : column.type !== "number" };
          show();
        });
        return html("th", { scope: "col" }, button);
      });
      const first = page * size || 0;
      const body = order.slice(first, first + size).map((row) =>
        html("tr", {}, ...table.columns.map((column, at) => this.cell(table, row, at, column.type))),
      );
      const whole = html("table", { class: "deepscope-table" }, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...body));
      const parts: Node[] = [html("div", { class: "deepscope-scroll" }, whole)];
      if (pages > 1) {
        parts.push(this.pager(page, pages, (to) => { page = to; show(); }));
      }
      this.container.replaceChildren(...parts);
    };
    show();
    this.tell("ready");
  }

  private cell(table: DataTable, row: number, column: number, type: string): HTMLElement {
    const cell = table.rows[row]?.[column];
    const element = html("td", type === "number" ? { class: "deepscope-number" } : {}, typeof cell === "string" ? wordsOf(cell) : shown(cell));
    const style = table.getProperty(row, column, "style");
    if (typeof style === "string") {
      element.style.cssText = style; // of torch-tb-profiler's own code, never of a trace
    }
    return element;
  }

  private pager(page: number, pages: number, go: (to: number) => void): HTMLElement {
    const button = (words: string, to: number): HTMLElement => {
      const element = html("button", { type: "button" }, words);
      element.disabled = to < 0 || to >= pages;
      element.addEventListener("click", () => go(to));
      return element;
    };
    return html("div", { class: "deepscope-pager" }, button("Previous", page - 1), ` ${page + 1} of ${pages} `, button("Next", page + 1));
  }
}
