/** The source as it ran, with its numbers in the margin. */

import { duration, share } from "../../flame/sums";
import type { Measured, ReportData, SourceFile } from "./data";
import { el } from "./dom";

/** The view of files; `show` brings a line of a file into sight. */
export class SourceView {
  readonly element = el("div", { class: "source" });
  private readonly list = el("ul", { class: "files" });
  private readonly code = el("div", { class: "code" });

  constructor(
    private readonly data: ReportData,
    private readonly opens: (file: number, line: number) => void,
  ) {
    data.files.forEach((file, at) => {
      const button = el("button", { type: "button", class: "link", title: file.path }, file.name);
      button.addEventListener("click", () => this.opens(at, 0));
      this.list.append(el("li", {}, button, el("span", { class: "muted" }, ` ${duration(file.cost)}`)));
    });
    this.element.append(this.list, this.code);
  }

  show(at: number, line: number): void {
    const file = this.data.files[at];
    [...this.list.children].forEach((entry, number) => entry.classList.toggle("chosen", number === at));
    if (file === undefined) {
      this.code.replaceChildren("There is no such file.");
      return;
    }
    const rows = file.text === null ? withoutText(file) : withText(file, file.text);
    const marked = rows.find((row) => row.dataset["line"] === String(line));
    marked?.classList.add("marked");
    const heads = ["line", "cost", this.data.isDevice ? "device" : "operators", "idle", "CPU", ""];
    const head = el("tr", {}, ...heads.map((word) => el("th", { scope: "col", class: "number" }, word)));
    const parts: Node[] = [el("h3", {}, file.path)];
    if (file.text === null) {
      parts.push(el("p", { class: "muted" }, "The text that ran is not in this file."));
    }
    parts.push(el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)));
    this.code.replaceChildren(...parts);
    marked?.scrollIntoView({ block: "center" });
  }
}

function withText(file: SourceFile, text: readonly string[]): HTMLElement[] {
  const measured = new Map(file.lines.map((one) => [one.line, one]));
  const beyond = file.lines.filter((one) => one.line > text.length);
  return [
    ...text.map((words, at) => row(at + 1, words, measured.get(at + 1), file.cost)),
    ...beyond.map((one) => row(one.line, "", one, file.cost)),
  ];
}

function withoutText(file: SourceFile): HTMLElement[] {
  return [...file.lines].sort((one, other) => one.line - other.line).map((one) => row(one.line, "", one, file.cost));
}

function row(number: number, words: string, one: Measured | undefined, whole: number): HTMLElement {
  const times = [one?.self, one?.idle, one?.cpu].map((time) => el("td", { class: "number" }, time ? duration(time) : ""));
  const cost = el("td", { class: "number" }, one !== undefined && one.cost > 0 && whole > 0 ? share(one.cost / whole) : "");
  const made = el("tr", { "data-line": String(number) }, el("td", { class: "number muted" }, String(number)), cost, ...times);
  made.append(el("td", {}, el("pre", {}, words)));
  if (one !== undefined && whole > 0) {
    made.style.setProperty("--heat", String(Math.sqrt(Math.min(Math.max(one.cost / whole, 0), 1))));
    made.classList.add("hot");
  }
  if (one !== undefined && one.backward > 0) {
    made.title = `forward ${duration(one.self - one.backward)}, backward ${duration(one.backward)}`;
  }
  return made;
}
