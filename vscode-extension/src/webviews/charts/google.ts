/**
 * In the place of Google Charts' loader in torch-tb-profiler's page: loads Google's where the network is there, and
 * otherwise draws the charts itself. Without it the page waits for ever.
 */

import plotStyle from "uplot/dist/uPlot.min.css";
import { axesChart } from "./axes";
import { html, PieChart, Table, Timeline, type Chart } from "./chart";
import style from "./charts.css";
import { arrayToDataTable, DataTable } from "./data";

const LOADER = "https://www.gstatic.com/charts/loader.js";
/** Where a firewall swallows what is sent, nothing ever fails. */
const PATIENCE_MS = 5_000;

interface Charts {
  readonly load: (...given: unknown[]) => Promise<unknown>;
  readonly setOnLoadCallback: (ready: () => void) => void;
}

const page = window as unknown as { google?: { readonly charts?: Charts; readonly visualization?: unknown } };

const visualization = {
  DataTable,
  arrayToDataTable,
  Table,
  PieChart,
  Timeline,
  ColumnChart: axesChart("bars"),
  LineChart: axesChart("line"),
  ComboChart: axesChart("line"),
  SteppedAreaChart: axesChart("area"),
  events: { addListener: (chart: Chart, event: string, listener: () => void) => event === "select" && chart.onSelect.push(listener) },
};

const late = (): Promise<never> => new Promise((_, reject) => setTimeout(() => reject(new Error("Google Charts did not answer")), PATIENCE_MS));

/** Google's own loader, from the network; started at once, while the page loads its data. */
const network = new Promise<Charts>((resolve, reject) => {
  const script = html("script", { src: LOADER });
  script.addEventListener("load", () => {
    const loaded = page.google?.charts ?? charts;
    if (loaded === charts) {
      reject(new Error("the loader defined no charts"));
    }
    resolve(loaded); // after a rejection this does nothing
  });
  script.addEventListener("error", () => reject(new Error("the loader could not be fetched")));
  document.head.append(script);
});

let loading: Promise<unknown> | undefined;

const charts: Charts = {
  load: (...given) => (loading ??= started.then((loader) => Promise.race([loader.load(...given), late()])).catch(standIn)),
  setOnLoadCallback: (ready) => void charts.load("current", { packages: ["corechart", "table", "timeline"] }).then(ready),
};

/** Ours for good: what still arrives of Google's must not mix with it. */
function standIn(): void {
  Object.defineProperty(window, "google", { value: Object.freeze({ charts, visualization }), writable: false, configurable: false });
  const note = html("button", { class: "deepscope-note", type: "button", title: "Hide" }, "Google Charts could not be loaded; DeepScope draws these charts. ✕");
  note.addEventListener("click", () => note.remove());
  document.head.append(html("style", {}, plotStyle, style));
  document.body.append(note);
}

const started = Promise.race([network, late()]);
started.catch(() => undefined); // load() handles it
page.google = { charts };
