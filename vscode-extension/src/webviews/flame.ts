/** The flame graph's page: draws what the extension sends, and tells it what was clicked. */

import { select } from "d3-selection";
import flamegraph, { type FlameGraph, type PlacedNode } from "d3-flame-graph";
import { DEPTH_WORDS, KIND_WORDS } from "../depths";
import { boxColour, KINDS, kindColour } from "../flame/colours";
import { toPage, type DrawnNode, type FrameLabel, type FromPage, type ToPage } from "../flame/messages";
import { sumWords } from "../flame/sums";
import { readOr } from "../shape";
import { outerSum } from "./boxSums";
import "./flame.css";

type Graph = Extract<ToPage, { type: "graph" }>;
/** The chart's own copy of a node, whose name follows the edits of its file. */
interface Box extends FrameLabel, Pick<DrawnNode, "frame" | "kind" | "opens" | "value" | "self" | "words"> {
  name: string;
  place: string;
  readonly children: readonly Box[];
}

const METRIC_WORDS = { device: "Device time", backward: "Backward", cpu: "CPU time" } as const;
const RESIZE_DELAY_MS = 100;
const MARKED = "#c586ff";

const vscode = acquireVsCodeApi();
const chartElement = element("chart", HTMLElement);
const details = element("details", HTMLElement);
const metric = element("metric", HTMLSelectElement);
const depth = element("depth", HTMLSelectElement);
const rank = element("rank", HTMLSelectElement);
const legend = element("legend", HTMLUListElement);
const search = element("search", HTMLInputElement);

let graph: Graph | undefined;
let chart: FlameGraph<Box> | undefined;
let resizing: number | undefined;
let isZooming = false;
/** Frames whose boxes are marked until the next search. */
let marked: ReadonlySet<number> = new Set();

window.addEventListener("message", (event: MessageEvent<unknown>) => {
  const message = event.origin === window.origin ? readOr(toPage, event.data) : undefined;
  switch (message?.type) {
    case "graph":
      graph = message;
      showChoices(message);
      marked = new Set();
      details.textContent = "";
      draw(message);
      break;
    case "labels":
      relabel(message.labels);
      break;
    case "mark":
      mark(new Set(message.frames));
      break;
    case "empty":
      graph = undefined;
      clearChart();
      details.textContent = message.message;
      break;
    case undefined:
      break;
  }
});
window.addEventListener("resize", () => {
  window.clearTimeout(resizing);
  resizing = window.setTimeout(() => graph !== undefined && draw(graph), RESIZE_DELAY_MS);
});
search.addEventListener("input", find);
element("reset", HTMLButtonElement).addEventListener("click", () => chart?.resetZoom());
// The editor reads what its menu is about from here.
chartElement.addEventListener("contextmenu", (event) => {
  const box = event.target instanceof Element ? event.target.closest("g.frame") : null;
  const frame = box === null ? -1 : select<Element, PlacedNode<Box>>(box).datum().data.opens;
  chartElement.dataset["vscodeContext"] = JSON.stringify({ frame, opens: frame >= 0, preventDefaultContextMenuItems: true });
}, true);
for (const choice of [metric, depth, rank]) {
  choice.addEventListener("change", () => {
    const chosen = graph?.metrics.find((one) => one === metric.value);
    const down = graph?.depths.find((one) => one === depth.value);
    if (chosen !== undefined && down !== undefined) {
      post({ type: "choose", metric: chosen, rank: rank.value === "" ? null : Number(rank.value), depth: down });
    }
  });
}
post({ type: "ready" });

function draw({ root }: Graph): void {
  clearChart();
  chart = flamegraph<Box>()
    .width(Math.max(200, chartElement.clientWidth))
    .cellHeight(20)
    .minFrameSize(1)
    .transitionDuration(document.body.classList.contains("vscode-reduce-motion") ? 0 : 150)
    .inverted(true)
    .sort((one, other) => other.data.value - one.data.value)
    .setLabelHandler((node) => label(node.data))
    .setColorMapper((node) => (node.highlight === true ? MARKED : boxColour(node.data, root.value)))
    .setSearchMatch((node, term) => `${node.data.name} ${node.data.place}`.toLowerCase().includes(term.toLowerCase()))
    .setSearchHandler((found) => {
      details.textContent = `${found.length} frames, ${sumOf(found, root)}`;
    })
    .setDetailsElement(details)
    .onClick((node) => {
      if (!isZooming && node.data.opens >= 0) {
        post({ type: "open", frame: node.data.opens });
      }
    });
  // The library writes into its data: it gets a copy.
  select<HTMLElement, Box>(chartElement).datum(structuredClone(root)).call(chart);
  if (marked.size > 0) {
    mark(marked);
  } else if (search.value !== "") {
    find();
  }
}

function clearChart(): void {
  chart?.destroy();
  chart = undefined;
  chartElement.replaceChildren();
}

function find(): void {
  marked = new Set();
  if (search.value === "") {
    chart?.clear();
  } else {
    chart?.search(search.value);
  }
}

/** Marks all boxes of a line, those of its forward and of its backward pass, and zooms to what holds them all. */
function mark(frames: ReadonlySet<number>): void {
  const root = rootNode();
  if (chart === undefined || root === undefined) {
    return;
  }
  marked = frames;
  search.value = "";
  const boxes: PlacedNode<Box>[] = [];
  root.each((node) => {
    node.highlight = frames.has(node.data.frame);
    if (node.highlight) {
      boxes.push(node);
    }
  });
  isZooming = true; // the library takes this for a click
  chart.resetZoom(); // a box that is hidden now cannot be zoomed to
  chart.zoomTo(boxes.reduce(holding, boxes[0] ?? root));
  isZooming = false;
  const boxWords = boxes.length === 1 ? "1 box" : `${boxes.length} boxes`;
  const [first] = boxes;
  details.textContent =
    first === undefined
      ? "The line has no time of its own or of its calls in this graph."
      : `${first.data.name} · ${boxWords} · ${sumOf(boxes, root.data)}`;
}

/** The innermost box that holds both. */
function holding(one: PlacedNode<Box>, other: PlacedNode<Box>): PlacedNode<Box> {
  const above = new Set(other.ancestors());
  return one.ancestors().find((node) => above.has(node)) ?? one;
}

/** Boxes are named by their lines as they stand now. */
function relabel(labels: readonly FrameLabel[]): void {
  rootNode()?.each(({ data }) => {
    const now = labels[data.frame];
    if (now !== undefined) {
      [data.name, data.place] = [now.name, now.place];
    }
  });
  chart?.update();
}

function rootNode(): PlacedNode<Box> | undefined {
  return select<HTMLElement, PlacedNode<Box>>(chartElement).datum();
}

/** Time and share of boxes; the share is of the whole graph, also when zoomed. */
function sumOf(boxes: readonly PlacedNode<Box>[], root: Pick<DrawnNode, "value">): string {
  return sumWords(outerSum(boxes), root.value);
}

function label({ name, words, place }: Omit<DrawnNode, "children">): string {
  return [name, words, place].filter((part) => part !== "").join(" · ");
}

function showChoices(shown: Graph): void {
  fill(depth, shown.depths.map((one) => ({ value: one, words: DEPTH_WORDS[one] })), shown.depth);
  depth.disabled = shown.metric === "cpu";
  depth.title = depth.disabled ? "The CPU's time is known of lines, not of what is below them" : "";
  showLegend(shown.root);
  fill(metric, shown.metrics.map((one) => ({ value: one, words: wordsOf(one, shown.isDevice) })), shown.metric);
  const ranks = shown.ranks.map((one) => ({ value: String(one), words: String(one) }));
  fill(rank, [{ value: "", words: "all" }, ...ranks], shown.rank === null ? "" : String(shown.rank));
  element("rankLabel", HTMLElement).hidden = shown.ranks.length < 2;
  element("caption", HTMLElement).textContent = shown.caption;
}

/** Without device work the operators' own time on the CPU stands in for it. */
function wordsOf(one: Graph["metric"], isDevice: boolean): string {
  return one === "device" && !isDevice ? "Operators' CPU time (no device in this trace)" : METRIC_WORDS[one];
}

/** Which colour is what, where there is more than lines. */
function showLegend(root: DrawnNode): void {
  const kinds = new Set<DrawnNode["kind"]>();
  const collect = (nodes: readonly DrawnNode[]): void => {
    for (const node of nodes) {
      kinds.add(node.kind);
      collect(node.children);
    }
  };
  collect(root.children);
  const shown = kinds.size > 1 ? KINDS.filter((kind) => kinds.has(kind)) : [];
  legend.replaceChildren(
    ...shown.map((kind) => {
      const [entry, swatch] = [document.createElement("li"), document.createElement("span")];
      swatch.style.backgroundColor = kindColour(kind);
      entry.append(swatch, KIND_WORDS[kind]);
      return entry;
    }),
  );
}

function fill(choice: HTMLSelectElement, options: readonly { value: string; words: string }[], chosen: string): void {
  choice.replaceChildren(...options.map(({ value, words }) => new Option(words, value, false, value === chosen)));
}

function post(message: FromPage): void {
  vscode.postMessage(message);
}

function element<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) {
    throw new Error(`#${id} is missing`);
  }
  return found;
}
