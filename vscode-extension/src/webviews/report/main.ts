/** The page of `deepscope export --to html`: one file that shows a profile and asks nobody for anything. */

import { read } from "../../shape";
import { factList, memoryChart, splitBar, stepChart } from "./charts";
import { reportData, type Finding, type ReportData } from "./data";
import { duration } from "../../flame/sums";
import { el } from "./dom";
import { FlameView } from "./flameChart";
import { SourceView } from "./source";
import { table, words } from "./tables";
import "./report.css";

const TOP_LINES = 5;
const TOP_FINDINGS = 3;

interface View {
  readonly id: string;
  readonly title: string;
  readonly element: HTMLElement;
  /** Called each time that the view comes into sight, with what stands behind its name in the address. */
  readonly shown?: (rest: string) => void;
}

const data = read(reportData, JSON.parse(document.getElementById("profile")?.textContent ?? "null"), "the profile");
const source = new SourceView(data, open);
const flame = new FlameView(data.flame, data.isDevice, open);
const views: readonly View[] = [
  { id: "overview", title: "Overview", element: overview(data) },
  ...data.tables.slice(0, 1).map(tableView),
  {
    id: "source",
    title: "Source",
    element: source.element,
    shown: (rest: string): void => {
      const [file = "0", line = "0"] = rest.split(":");
      source.show(Number(file), Number(line));
    },
  },
  { id: "flame", title: "Flame graph", element: flame.element, shown: () => flame.draw() },
  ...data.tables.slice(1).filter(({ rows }) => rows.length > 0).map(tableView),
  { id: "memory", title: "Memory", element: el("div", {}, ...data.memory.map(memoryChart)) },
  { id: "findings", title: "Findings", element: el("div", {}, ...data.findings.map(findingCard)) },
].filter(({ id }) => !isEmpty(id));

const links = views.map(({ id, title }) => el("a", { href: `#${id}` }, title));
const sections = views.map(({ id, title, element }) => el("section", { id: `view-${id}` }, el("h2", {}, title), element));
document.body.replaceChildren(
  el("header", {}, el("h1", {}, data.title), el("nav", { "aria-label": "Pages" }, ...links)),
  el("main", {}, ...sections),
);
window.addEventListener("hashchange", route);
route();

function isEmpty(id: string): boolean {
  const content = { source: data.files, memory: data.memory, findings: data.findings, flame: data.flame.nodes }[id];
  return content?.length === 0;
}

function route(): void {
  const [id = "", rest = ""] = window.location.hash.slice(1).split("/");
  const chosen = Math.max(views.findIndex((view) => view.id === id), 0);
  sections.forEach((section, at) => {
    section.hidden = at !== chosen;
  });
  links.forEach((link, at) => {
    if (at === chosen) {
      link.setAttribute("aria-current", "page");
    } else {
      link.removeAttribute("aria-current");
    }
  });
  views[chosen]?.shown?.(rest);
}

/** Shows a line of a file; the way back leads here again. */
function open(file: number, line: number): void {
  window.location.hash = `source/${file}:${line}`;
}

function tableView(one: ReportData["tables"][number]): View {
  return { id: one.id, title: one.title, element: table(one, open) };
}

function overview(shown: ReportData): HTMLElement {
  const parts: HTMLElement[] = shown.notes.map((note) => el("p", { class: "note" }, note));
  const figures = shown.figures.map(({ label, value, kind }) => ({ label, value: words(value, kind) }));
  parts.push(factList(figures, "figures"));
  if (shown.split.length > 0) {
    parts.push(el("h3", {}, "Where the time goes"), splitBar(shown));
  }
  const [lines] = shown.tables;
  if (lines !== undefined && lines.rows.length > 0) {
    const top = { ...lines, rows: lines.rows.slice(0, TOP_LINES), places: lines.places.slice(0, TOP_LINES), leftOut: 0 };
    const found = table(top, open);
    found.querySelector(".tools")?.remove();
    parts.push(el("h3", {}, "The dearest lines"), found);
  }
  if (shown.findings.length > 0) {
    parts.push(el("h3", {}, "What to do"), ...shown.findings.slice(0, TOP_FINDINGS).map(findingCard));
  }
  if (shown.steps.length > 0) {
    parts.push(el("h3", {}, "Steps"), stepChart(shown));
  }
  parts.push(el("h3", {}, "Where this was recorded"), factList(shown.facts, "facts"));
  return el("div", {}, ...parts);
}

function findingCard(finding: Finding): HTMLElement {
  const card = el("article", { class: `finding ${finding.severity}` }, el("h4", {}, `${finding.code} ${finding.title}`));
  const saving = finding.saving > 0 ? `saves up to ${duration(finding.saving)}` : "";
  if (finding.file >= 0) {
    const link = el("button", { type: "button", class: "link" }, finding.place);
    link.addEventListener("click", () => open(finding.file, finding.line));
    card.append(el("p", {}, link, " ", el("span", { class: "muted" }, saving)));
  } else {
    card.append(el("p", { class: "muted" }, [finding.place, saving].filter((word) => word !== "").join(" · ")));
  }
  card.append(el("p", {}, finding.message), el("p", {}, finding.remedy));
  return card;
}
