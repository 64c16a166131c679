/** The flame graph of the page: the colours and words of the extension's own. */

import { select } from "d3-selection";
import flamegraph, { type FlameGraph } from "d3-flame-graph";
import { boxColour } from "../../flame/colours";
import { share, duration, sumWords } from "../../flame/sums";
import { frameKind, type FrameKind } from "../../server/contract";
import { readOr } from "../../shape";
import type { Flame } from "./data";
import { outerSum } from "../boxSums";
import { el } from "./dom";

const METRICS = ["device", "backward", "cpu"] as const;
type Metric = (typeof METRICS)[number];
const DEVICE = 3;

interface Box {
  readonly name: string;
  readonly kind: FrameKind;
  /** -1 for no line. */
  readonly frame: number;
  readonly file: number;
  readonly line: number;
  value: number;
  self: number;
  readonly children: Box[];
}

/** The view; it is drawn when it is first shown, since only then it has a width. */
export class FlameView {
  readonly element = el("div");
  private readonly chartElement = el("div", { class: "flame" });
  /** What the mouse is on, or what a search found. */
  private readonly details = el("p", { class: "muted details" });
  /** The box that was clicked, with the way to its line. */
  private readonly chosen = el("p", { class: "details" });
  private readonly metric = el("select", { "aria-label": "Metric" });
  private readonly search = el("input", { type: "search", placeholder: "Search", "aria-label": "Search frames" });
  private chart: FlameGraph<Box> | undefined;

  constructor(
    private readonly flame: Flame,
    isDevice: boolean,
    private readonly opens: (file: number, line: number) => void,
  ) {
    const labels = [isDevice ? "Device time" : "Operators' CPU time", "Backward", "CPU time of the lines"];
    METRICS.forEach((metric, at) => {
      if (flame.nodes.some((node) => (node[DEVICE + at] ?? 0) > 0)) {
        this.metric.append(new Option(labels[at], metric));
      }
    });
    const reset = el("button", { type: "button" }, "Reset zoom");
    reset.addEventListener("click", () => this.chart?.resetZoom());
    this.metric.addEventListener("change", () => this.draw());
    this.search.addEventListener("input", () => this.find());
    this.element.append(el("p", { class: "tools" }, this.metric, this.search, reset), this.chosen, this.details, this.chartElement);
    window.addEventListener("resize", () => this.draw());
  }

  draw(): void {
    const width = this.chartElement.clientWidth;
    if (width === 0) {
      return; // not seen
    }
    this.chart?.destroy();
    this.chartElement.replaceChildren();
    this.chosen.replaceChildren();
    const metric = METRICS.find((one) => one === this.metric.value);
    if (metric === undefined) {
      this.details.textContent = "No time is known by call path.";
      return;
    }
    const root = treeOf(this.flame, metric);
    this.chart = flamegraph<Box>()
      .width(width)
      .cellHeight(20)
      .minFrameSize(1)
      .transitionDuration(window.matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 150)
      .inverted(true)
      .sort((one, other) => other.data.value - one.data.value)
      .setLabelHandler(({ data }) => `${data.name} · ${duration(data.value)} (${share(root.value > 0 ? data.value / root.value : 0)})`)
      .setColorMapper((node) => (node.highlight === true ? "#c586ff" : boxColour(node.data, root.value)))
      .setSearchMatch((node, term) => node.data.name.toLowerCase().includes(term.toLowerCase()))
      .setSearchHandler((found) => {
        this.details.textContent = `${found.length} frames, ${sumWords(outerSum(found), root.value)}`;
      })
      .setDetailsElement(this.details)
      .onClick(({ data }) => {
        this.chosen.replaceChildren(...this.described(data, root.value));
      });
    select<HTMLElement, Box>(this.chartElement).datum(root).call(this.chart);
    this.find();
  }

  private find(): void {
    if (this.search.value === "") {
      this.chart?.clear();
    } else {
      this.chart?.search(this.search.value);
    }
  }

  private described(box: Box, whole: number): Node[] {
    const words = document.createTextNode(`${box.name} · ${sumWords(box.value, whole)} `);
    if (box.file < 0) {
      return [words];
    }
    const link = el("button", { type: "button", class: "link" }, "show the line");
    link.addEventListener("click", () => this.opens(box.file, box.line));
    return [words, link];
  }
}

function treeOf(flame: Flame, metric: Metric): Box {
  const at = DEVICE + METRICS.indexOf(metric);
  const root: Box = { name: "all", kind: "other", frame: 0, file: -1, line: 0, value: 0, self: 0, children: [] };
  const boxes: Box[] = [];
  const parents: Box[] = [];
  for (const node of flame.nodes) {
    const [parent = -1, name = 0, kindAt = 0] = node;
    const kind = readOr(frameKind, flame.kinds[kindAt]) ?? "other";
    const self = node[at] ?? 0;
    const [file = -1, line = 0] = node.slice(DEVICE + METRICS.length);
    const label = flame.names[name] ?? "";
    const box: Box = { name: label, kind, frame: file < 0 && kind === "line" ? -1 : 0, file, line, value: self, self, children: [] };
    boxes.push(box);
    parents.push(boxes[parent] ?? root);
  }
  for (let index = boxes.length - 1; index >= 0; index -= 1) {
    const [box, parent] = [boxes[index], parents[index]];
    if (box !== undefined && parent !== undefined && box.value > 0) {
      parent.value += box.value;
      parent.children.push(box);
    }
  }
  return root;
}
