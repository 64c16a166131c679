/** What all charts have: a container, listeners, a selection; and those that need no axes: shares as bars, spans in rows, tables. */

import { orderOf, sharesOf, shown, spansOf, type DataTable } from "./data";

/** The options that torch-tb-profiler gives, as far as these charts heed them. */
export interface Options {
  readonly title?: string;
  readonly height?: number | string;
  readonly isStacked?: boolean;
  readonly colors?: readonly string[];
  readonly hAxis?: { readonly title?: string };
  readonly vAxis?: { readonly title?: string };
  readonly series?: Readonly<Record<number, { readonly type?: string; readonly targetAxisIndex?: number }>>;
  readonly sortColumn?: number;
  readonly sortAscending?: boolean;
}

type Selected = readonly { readonly row: number; readonly column: number }[];

export abstract class Chart {
  /** Told of a selection, of which the page then asks. */
  readonly onSelect: (() => void)[] = [];
  private selected: Selected = [];

  constructor(protected readonly container: HTMLElement) {}

  clearChart(): void {
    this.container.replaceChildren();
  }

  getSelection(): Selected {
    return this.selected;
  }

  setSelection(selected: Selected = []): void {
    this.selected = selected;
  }

  protected select(row: number, column: number): void {
    this.selected = [{ row, column }];
    this.onSelect.forEach((listener) => listener());
  }
}

/** Colours that stay apart for most colour-blind readers. */
const COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#997700", "#555555", "#44aa99", "#882255"];

export function colour(at: number, given: readonly string[] = COLOURS): string {
  return given[at % given.length] ?? "#555555";
}

/** Words become text, never markup: names in them come from traces. */
export function html<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  element.append(...children);
  return element;
}

/** The words of a piece of HTML. It is parsed in a document of its own, where nothing runs and nothing is loaded. */
function wordsOf(markup: string): string {
  const spaced = markup.replace(/<br\s*\/?>|<\/(?:div|p|tr|li)>/gi, "\n");
  return /[<&]/.test(markup) ? (new DOMParser().parseFromString(spaced, "text/html").body.textContent || "").trim() : markup;
}

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
