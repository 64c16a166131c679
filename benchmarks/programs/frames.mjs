// Moves through the dashboard's timeline in a real browser and times its frames: node frames.mjs URL CHROMIUM SECONDS
//
// In each frame a wheel event zooms or pans, so that each has to be drawn anew while the server brings what is seen. The
// time between two frames is what a reader sees; how long the page's own script worked in it stands beside it. Without a
// GPU, as on a machine that has none: the processor does what a graphics card would. A second round, traced, tells the
// processor's time of each frame, which other programs on the machine do not disturb.
import { createRequire } from "node:module";

const [url, executablePath, seconds] = process.argv.slice(2);
const { chromium } = createRequire(new URL("../../tests/e2e/package.json", import.meta.url))("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
try {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  const begun = performance.now();
  await page.goto(`${url}#/timeline`);
  await page.locator(".stage .lanes").waitFor({ timeout: 300_000 });
  const shownMs = performance.now() - begun;
  await page.waitForTimeout(1500);
  const taken = await page.evaluate(move, Number(seconds));
  await browser.startTracing(page, { categories: ["cc", "viz", "toplevel"] });
  await page.evaluate(move, Number(seconds));
  const cpu = cpuOf(JSON.parse((await browser.stopTracing()).toString()).traceEvents);
  const slices = await page.locator(".timeline").getAttribute("data-slices");
  process.stdout.write(JSON.stringify({ shown_ms: shownMs, slices: Number(slices), ...taken, cpu }));
} finally {
  await browser.close();
}

/** Milliseconds of each frame on the page's thread and on the one that puts the picture together. */
function cpuOf(events) {
  const of = (name) => events.filter((event) => event.name === name && event.tdur > 0).map(({ tdur }) => tdur / 1000);
  return { page: of("ProxyMain::BeginMainFrame"), compositor: of("Display::DrawAndSwap") };
}

async function move(seconds) {
  const area = document.querySelector(".stage .lanes");
  const box = document.querySelector(".stage canvas.base").getBoundingClientRect();
  const motions = {
    "zooming in": (part) => ({ deltaY: -24, x: 0.3 + 0.4 * part }),
    "panning, zoomed in": (part) => ({ deltaX: part < 0.5 ? 40 : -40, x: 0.5 }),
    "zooming out": (part) => ({ deltaY: 24, x: 0.7 - 0.4 * part }),
    "zooming halfway": (part) => ({ deltaY: part < 0.6 ? -16 : 0, x: 0.62 }),
    "panning fast": (part) => ({ deltaX: part < 0.5 ? 160 : -160, x: 0.5 }),
    "scrolling and hovering": (part) => ({ scroll: part < 0.5 ? 6 : -6, x: part }),
  };
  const frames = {};
  for (const [name, at] of Object.entries(motions)) {
    frames[name] = await new Promise((resolve) => {
      const [intervals, work] = [[], []];
      const first = performance.now();
      let last;
      const frame = (now) => {
        const began = performance.now();
        if (last !== undefined) {
          intervals.push(now - last);
        }
        last = now;
        const part = (began - first) / (seconds * 1000);
        if (part >= 1) {
          resolve({ intervals, work });
          return;
        }
        // The page asks for its own frame when the event comes: this one is asked for first, so it runs before it.
        requestAnimationFrame(frame);
        const { x, scroll, ...delta } = at(part);
        const place = { clientX: box.left + x * box.width, clientY: box.top + 200, bubbles: true, cancelable: true };
        if (scroll === undefined) {
          area.dispatchEvent(new WheelEvent("wheel", { ...place, ...delta }));
        } else {
          area.scrollTop += scroll;
          area.dispatchEvent(new PointerEvent("pointermove", place));
        }
        const channel = new MessageChannel();
        channel.port1.onmessage = () => work.push(performance.now() - began);
        channel.port2.postMessage(0);
      };
      requestAnimationFrame(frame);
    });
  }
  return { frames };
}
