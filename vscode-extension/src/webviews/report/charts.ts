/** The page's drawings: steps as stacked bars, a split of time, a curve of memory. */

import { duration } from "../../flame/sums";
import type { Fact, Memory, ReportData, Step } from "./data";
import { bytes, el, svg } from "./dom";

const WIDTH = 900;
const HEIGHT = 220;
const LEFT = 70;
const BOTTOM = 24;
const MOST_STEPS = 300;

/** Each step's phases, one upon another. */
export function stepChart({ steps, phaseNames }: ReportData): HTMLElement {
  const shown = steps.slice(0, MOST_STEPS);
  const top = Math.max(...shown.map((step) => step.duration), 1);
  const root = canvas("Time of each step by phase", top, duration);
  const place = (WIDTH - LEFT) / Math.max(shown.length, 1);
  shown.forEach((step, at) => {
    let below = 0;
    step.phases.forEach((time, phase) => {
      const box = svg("rect", {
        x: LEFT + at * place + place * 0.1,
        width: Math.max(Math.min(place * 0.8, 60), 0.5),
        y: vertical(below + time, top),
        height: Math.max(vertical(below, top) - vertical(below + time, top), 0),
        class: `phase${phase}`,
      });
      box.append(svg("title", {}, `step ${step.number}, ${phaseNames[phase] ?? ""}: ${duration(time)}`));
      root.append(box);
      below += time;
    });
    if (place > 24 || at % Math.ceil(24 / place) === 0) {
      root.append(svg("text", { x: LEFT + at * place + place * 0.1, y: HEIGHT - 6 }, String(step.number)));
    }
  });
  return el("figure", {}, root, legend(phaseNames.filter((_, phase) => shown.some((step) => hasPhase(step, phase))), phaseNames));
}

function hasPhase(step: Step, phase: number): boolean {
  return (step.phases[phase] ?? 0) > 0;
}

function legend(shown: readonly string[], all: readonly string[]): HTMLElement {
  const entries = shown.map((name) => el("li", {}, el("span", { class: `swatch phase${all.indexOf(name)}` }), name));
  return el("ul", { class: "legend" }, ...entries);
}

/** The training thread's time by phase, as one bar. */
export function splitBar({ split, phaseNames }: ReportData): HTMLElement {
  const parts = split.map(({ phase, value }) => ({ phase, value, label: phaseNames[phase] ?? "" }));
  const whole = parts.reduce((sum, part) => sum + part.value, 0);
  const bar = el("div", { class: "split", role: "img", "aria-label": parts.map((part) => `${part.label} ${duration(part.value)}`).join(", ") });
  const entries: HTMLElement[] = [];
  parts.forEach((part) => {
    const box = el("span", { class: `phase${part.phase}`, title: `${part.label}: ${duration(part.value)}` });
    box.style.setProperty("flex-grow", String(whole > 0 ? part.value / whole : 0));
    bar.append(box);
    const percent = whole > 0 ? `${(100 * part.value / whole).toFixed(1)} %` : "";
    entries.push(el("li", {}, el("span", { class: `swatch phase${part.phase}` }), `${part.label} ${duration(part.value)} (${percent})`));
  });
  return el("figure", {}, bar, el("ul", { class: "legend" }, ...entries));
}

/** What a device had allocated over time, its peak marked. */
export function memoryChart(memory: Memory): HTMLElement {
  const { points } = memory;
  const top = points.reduce((most, [, allocated = 0]) => Math.max(most, allocated), 1);
  const last = Math.max(points.at(-1)?.[0] ?? 1, 1);
  const across = (at: number): number => LEFT + (at / last) * (WIDTH - LEFT - 10);
  const root = canvas(`Memory of ${memory.device}`, top, bytes);
  const path = points.map(([at = 0, allocated = 0], number) => {
    const y = vertical(allocated, top).toFixed(1);
    return number === 0 ? `M${across(at).toFixed(1)},${y}` : `H${across(at).toFixed(1)}V${y}`;
  });
  root.append(svg("path", { d: path.join(""), class: "curve" }));
  const peak = svg("circle", { cx: across(memory.peakAt), cy: vertical(memory.peak, top), r: 4, class: "peak" });
  peak.append(svg("title", {}, `peak ${bytes(memory.peak)} at ${duration(memory.peakAt)}`));
  root.append(peak, svg("text", { x: WIDTH - 70, y: HEIGHT - 6 }, duration(last)));
  const capacity = memory.capacity > 0 ? ` of ${bytes(memory.capacity)}` : "";
  return el("figure", {}, el("figcaption", {}, `${memory.device}: peak ${bytes(memory.peak)}${capacity}`), root);
}

/** Labels with words beside them. */
export function factList(facts: readonly Fact[], style: string): HTMLElement {
  return el("dl", { class: style }, ...facts.map(({ label, value }) => el("div", {}, el("dt", {}, label), el("dd", {}, value))));
}

function vertical(value: number, top: number): number {
  return HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - 10);
}

function canvas(label: string, top: number, unit: (value: number) => string): SVGElement {
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, class: "chart" });
  for (const part of [0, 0.5, 1]) {
    const y = vertical(top * part, top);
    root.append(svg("line", { x1: LEFT, x2: WIDTH, y1: y, y2: y, class: "rule" }));
    root.append(svg("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, unit(top * part)));
  }
  return root;
}
