/** Draws counters as areas: from each time on the value that was told then. */

import { seen, type CounterLane } from "./layout";
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
  const tone = palette.charts[lane.counter.id % palette.charts.length] ?? palette.accent;
  for (const { tile, begin, end } of scene.charts(lane.counter.id)) {
    const left = Math.max((begin - view.begin) * scale, 0);
    const right = Math.min((end - view.begin) * scale, width);
    if (tile.at.length === 0 || right <= left) {
      continue;
    }
    const area = new Path2D();
    const edge = new Path2D();
    let [x, y, isBegun] = [left, bottom, false];
    area.moveTo(left, bottom);
    for (const [index, at] of tile.at.entries()) {
      const next = Math.min(Math.max((at - view.begin) * scale, left), right);
      // What lies before the piece only sets the value that it begins with.
      if (next > x || !isBegun) {
        area.lineTo(next, y);
        (isBegun ? edge.lineTo : edge.moveTo).call(edge, next, y);
        isBegun = true;
      }
      x = next;
      y = bottom - Math.max(tile.value[index] ?? 0, 0) * high;
      area.lineTo(x, y);
      edge.lineTo(x, y);
      if (x >= right) {
        break;
      }
    }
    area.lineTo(right, y);
    edge.lineTo(right, y);
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
