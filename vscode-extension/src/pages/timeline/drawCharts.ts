/** Draws counters as areas: from each time on the value that was told then. */

import { seen, type CounterLane } from "./layout";
import { chartOf } from "./palette";
import type { Scene } from "./scene";
import { spanOf } from "./view";

export function drawCharts(context: CanvasRenderingContext2D, scene: Scene): void {
  const { ratio, top, height } = scene;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  for (const lane of seen(scene.lanes, top, top + height)) {
    if (lane.type === "counter") {
      drawChart(context, scene, lane);
    }
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
}

function drawChart(context: CanvasRenderingContext2D, scene: Scene, lane: CounterLane): void {
  const { view, width, palette, top } = scene;
  const scale = width / spanOf(view);
  const bottom = lane.y + lane.height - top;
  const high = (lane.height - lane.head - 2) / Math.max(lane.counter.largest, 1e-9);
  const tone = palette.charts[chartOf(lane.title)] ?? palette.accent;
  for (const { tile, begin, end } of scene.charts(lane.counter.id)) {
    const left = Math.max((begin - view.begin) * scale, 0);
    const right = Math.min((end - view.begin) * scale, width);
    if (tile.at.length === 0 || right <= left) {
      continue;
    }
    const edge = new Path2D();
    const area = new Path2D();
    let [first, y] = [-1, bottom];
    for (const [index, at] of tile.at.entries()) {
      if (at >= end) {
        break;
      }
      const x = Math.min(Math.max((at - view.begin) * scale, left), right);
      const next = bottom - Math.max(tile.value[index] ?? 0, 0) * high;
      if (first < 0 || x === first) {
        // What lies before the piece only says with which value it begins.
        first = x;
        edge.moveTo(x, next);
        area.moveTo(x, bottom);
      } else {
        edge.lineTo(x, y);
        area.lineTo(x, y);
      }
      edge.lineTo(x, next);
      area.lineTo(x, next);
      y = next;
      if (x >= right) {
        break;
      }
    }
    if (first < 0) {
      continue;
    }
    edge.lineTo(right, y);
    area.lineTo(right, y);
    area.lineTo(right, bottom);
    context.fillStyle = tone;
    context.globalAlpha = 0.22;
    context.fill(area);
    context.globalAlpha = 0.9;
    context.strokeStyle = tone;
    context.lineWidth = 1;
    context.stroke(edge);
    context.globalAlpha = 1;
  }
}
