/** The flame graph's page: draws what the extension sends, and tells it what was clicked. */

import { select } from "d3-selection";
import flamegraph, { type FlameGraph, type PlacedNode } from "d3-flame-graph";
import { toPage, type DrawnNode, type FromPage, type ToPage } from "../flame/messages";
import { readOr } from "../shape";
import { duration, share } from "../units";
import "./flame.css";

type Graph = Extract<ToPage, { type: "graph" }>;

const METRIC_WORDS = { device: "Device time", backward: "Backward", cpu: "CPU time" } as const;
const RESIZE_DELAY_MS = 100;

const vscode = acquireVsCodeApi();
const chartElement = element("chart", HTMLElement);
const details = element("details", HTMLElement);
const metric = element("metric", HTMLSelectElement);
const rank = element("rank", HTMLSelectElement);
const search = element("search", HTMLInputElement);

let graph: Graph | undefined;
let chart: FlameGraph<DrawnNode> | undefined;
let resizing: number | undefined;

window.addEventListener("message", (event: MessageEvent<unknown>) => {
  const message = event.origin === window.origin ? readOr(toPage, event.data) : undefined;
  switch (message?.type) {
    case "graph":
      graph = message;
      showChoices(message);
      draw(message);
      break;
    case "focus":
      focus(message.frame);
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
search.addEventListener("input", () => (search.value === "" ? chart?.clear() : chart?.search(search.value)));
element("reset", HTMLButtonElement).addEventListener("click", () => chart?.resetZoom());
for (const choice of [metric, rank]) {
  choice.addEventListener("change", () => {
    const chosen = graph?.metrics.find((one) => one === metric.value);
    if (chosen !== undefined) {
      post({ type: "choose", metric: chosen, rank: rank.value === "" ? null : Number(rank.value) });
    }
  });
}
post({ type: "ready" });

function draw({ root }: Graph): void {
  clearChart();
  chart = flamegraph<DrawnNode>()
    .width(Math.max(200, chartElement.clientWidth))
    .cellHeight(20)
    .minFrameSize(1)
    .transitionDuration(document.body.classList.contains("vscode-reduce-motion") ? 0 : 150)
    .inverted(true)
    .sort((one, other) => other.data.value - one.data.value)
    .setLabelHandler((node) => label(node.data, root))
    .setColorMapper((node) => colour(node, root))
    .setSearchMatch((node, term) => `${node.data.name} ${node.data.place}`.toLowerCase().includes(term.toLowerCase()))
    .setSearchHandler((found, sum) => {
      details.textContent = `${found.length} frames, ${duration(sum)}, ${share(root.value > 0 ? sum / root.value : 0)}`;
    })
    .setDetailsElement(details)
    .onClick((node) => {
      if (node.data.frame >= 0) {
        post({ type: "open", frame: node.data.frame });
      }
    });
  // The library writes into its data: it gets a copy.
  select<HTMLElement, DrawnNode>(chartElement).datum(structuredClone(root)).call(chart);
}

function clearChart(): void {
  chart?.destroy();
  chart = undefined;
  chartElement.replaceChildren();
}

/** Zooms to the widest box of a frame. */
function focus(frame: number): void {
  const root = select<HTMLElement, PlacedNode<DrawnNode>>(chartElement).datum() as PlacedNode<DrawnNode> | undefined;
  let widest: PlacedNode<DrawnNode> | undefined;
  root?.each((node) => {
    if (node.data.frame === frame && node.value > (widest?.value ?? 0)) {
      widest = node;
    }
  });
  if (widest !== undefined) {
    chart?.zoomTo(widest);
    details.textContent = label(widest.data, root?.data);
  }
}

function label(node: DrawnNode, root: DrawnNode | undefined): string {
  const part = root !== undefined && root.value > 0 ? ` · ${share(node.value / root.value)}` : "";
  const own = node.self > 0 ? `, own ${duration(node.self)}` : "";
  return `${node.name} · ${duration(node.value)}${part}${own}${node.place === "" ? "" : ` · ${node.place}`}`;
}

/** From yellow to red with the frame's own share; grey where there is no line to go to. */
function colour(node: PlacedNode<DrawnNode>, root: DrawnNode): string {
  if (node.highlight === true) {
    return "#c586ff";
  }
  if (node.data.frame < 0) {
    return "#b8b8b8";
  }
  const own = root.value > 0 ? Math.min(1, (3 * node.data.self) / root.value) : 0;
  return `hsl(${Math.round(48 - 40 * own)} 90% ${Math.round(68 - 8 * own)}%)`;
}

function showChoices(shown: Graph): void {
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
