/** A table that is sorted by a click on a column's head and filtered by words. */

import { duration, share } from "../../flame/sums";
import type { Cell, CellKind, TableData } from "./data";
import { bytes, el } from "./dom";

const FIRST_ROWS = 100;

interface Order {
  readonly column: number;
  readonly isDescending: boolean;
}

/** The table with its filter; `opens` is called with the file and line of a row that has them. */
export function table(data: TableData, opens: (file: number, line: number) => void): HTMLElement {
  const head = el("tr");
  const body = el("tbody");
  const filter = el("input", { type: "search", placeholder: "Filter", "aria-label": `Filter ${data.title}` });
  const count = el("span", { class: "muted" });
  const more = el("button", { type: "button" }, "Show all rows");
  const firstNumber = data.columns.findIndex((column) => isNumber(column.kind));
  let order: Order = { column: Math.max(firstNumber, 0), isDescending: firstNumber >= 0 };
  let limit = FIRST_ROWS;

  const heads = data.columns.map((column, at) => {
    const button = el("button", { type: "button" }, column.title);
    const cell = el("th", { scope: "col", class: isNumber(column.kind) ? "number" : "words" }, button);
    button.addEventListener("click", () => {
      const isDescending = order.column === at ? !order.isDescending : isNumber(column.kind);
      order = { column: at, isDescending };
      show();
    });
    return cell;
  });
  head.append(...heads);

  const show = (): void => {
    heads.forEach((cell, at) => {
      cell.setAttribute("aria-sort", at !== order.column ? "none" : order.isDescending ? "descending" : "ascending");
    });
    const rows = chosen(data, filter.value, order);
    body.replaceChildren(...rows.slice(0, limit).map((row) => rowOf(data, row, opens)));
    const rest = data.leftOut > 0 ? `, ${data.leftOut} smaller ones are not in this file` : "";
    count.textContent = `${rows.length} of ${data.rows.length} rows${rest}`;
    more.hidden = rows.length <= limit;
  };
  filter.addEventListener("input", show);
  more.addEventListener("click", () => {
    limit = Number.POSITIVE_INFINITY;
    show();
  });
  show();
  return el(
    "div",
    {},
    el("p", { class: "tools" }, filter, count),
    el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), body)),
    more,
  );
}

function chosen(data: TableData, words: string, order: Order): number[] {
  const wanted = words.toLowerCase();
  const rows = data.rows.flatMap((row, at) =>
    wanted === "" || row.some((cell) => typeof cell === "string" && cell.toLowerCase().includes(wanted)) ? [at] : [],
  );
  const sign = order.isDescending ? -1 : 1;
  return rows.sort((one, other) => sign * compare(data.rows[one]?.[order.column], data.rows[other]?.[order.column]) || one - other);
}

function compare(one: Cell | undefined, other: Cell | undefined): number {
  if (typeof one === "number" && typeof other === "number") {
    return one - other;
  }
  if (typeof one === "string" && typeof other === "string") {
    return one.localeCompare(other);
  }
  return Number(one != null) - Number(other != null);
}

function rowOf(data: TableData, at: number, opens: (file: number, line: number) => void): HTMLElement {
  const row = el("tr");
  const [file = -1, line = 0] = data.places[at] ?? [];
  data.columns.forEach((column, number) => {
    const value = data.rows[at]?.[number] ?? null;
    const cell = el("td", { class: isNumber(column.kind) ? "number" : column.kind });
    if (column.kind === "place" && file >= 0) {
      const link = el("button", { type: "button", class: "link" }, words(value, column.kind));
      link.addEventListener("click", () => opens(file, line));
      cell.append(link);
    } else {
      cell.textContent = words(value, column.kind);
      cell.title = column.kind === "text" ? cell.textContent : "";
    }
    if (column.kind === "share" && typeof value === "number") {
      const bar = el("span", { class: "bar" });
      bar.style.setProperty("width", `${Math.min(Math.max(value, 0), 1) * 60}px`);
      cell.prepend(bar);
    }
    row.append(cell);
  });
  return row;
}

function isNumber(kind: CellKind): boolean {
  return kind !== "text" && kind !== "place";
}

/** A value as people read it; nothing for nothing. */
export function words(value: Cell, kind: CellKind): string {
  if (value === null || typeof value === "string") {
    return value ?? "";
  }
  if (value === 0) {
    return "";
  }
  switch (kind) {
    case "time":
      return value < 0 ? `-${duration(-value)}` : duration(value);
    case "bytes":
      return bytes(value);
    case "share":
      return share(value);
    case "count":
      return value.toLocaleString("en");
    case "text":
    case "place":
      return String(value);
  }
}
