/**
 * In the place of Google Charts' loader in torch-tb-profiler's page: loads Google's where the network is there, and
 * otherwise draws the charts itself. Without it the page waits for ever.
 */

import { ColumnChart, ComboChart, LineChart, SteppedAreaChart } from "./axes";
import type { Chart, Listener } from "./chart";
import { arrayToDataTable, DataTable } from "./data";
import { PieChart } from "./pie";
import { STYLE } from "./style";
import { html } from "./svg";
import { Table } from "./table";
import { Timeline } from "./timeline";

const LOADER = "https://www.gstatic.com/charts/loader.js";
/** Where a firewall swallows what is sent, nothing ever fails. */
const PATIENCE_MS = 5_000;

interface Charts {
  readonly load: (...given: unknown[]) => Promise<unknown>;
  readonly setOnLoadCallback: (ready: () => void) => void;
}
interface Google {
  readonly charts?: Charts;
  readonly visualization?: unknown;
}

const page = window as unknown as { google?: Google };

const visualization = {
  DataTable,
  arrayToDataTable,
  Table,
  PieChart,
  ColumnChart,
  LineChart,
  SteppedAreaChart,
  ComboChart,
  Timeline,
  events: {
    addListener: (chart: Chart, event: string, listener: Listener) => {
      chart.listen(event, listener);
      return { chart, event, listener };
    },
    removeListener: (listening: { chart: Chart; event: string; listener: Listener }) =>
      listening.chart.unlisten(listening.event, listening.listener),
  },
};

/** Google's own loader, from the network; started at once, while the page loads its data. */
const network = new Promise<Charts>((resolve, reject) => {
  const script = html("script", { src: LOADER });
  script.addEventListener("load", () => {
    const loaded = page.google?.charts;
    if (loaded === undefined || loaded === charts) {
      reject(new Error("the loader defined no charts"));
    } else {
      resolve(loaded);
    }
  });
  script.addEventListener("error", () => reject(new Error("the loader could not be fetched")));
  setTimeout(() => reject(new Error("the loader did not answer")), PATIENCE_MS);
  document.head.append(script);
});

let loading: Promise<unknown> | undefined;

const charts: Charts = {
  load: (...given) => (loading ??= fromNetwork(given).catch(standIn)),
  setOnLoadCallback: (ready) => void charts.load("current", { packages: ["corechart", "table", "timeline"] }).then(ready),
};

async function fromNetwork(given: unknown[]): Promise<unknown> {
  const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error("the charts did not arrive")), PATIENCE_MS));
  return Promise.race([network.then((loader) => loader.load(...given)), late]);
}

/** Ours for good: what still arrives of Google's must not mix with it. */
function standIn(): void {
  Object.defineProperty(window, "google", { value: Object.freeze({ charts, visualization }), writable: false, configurable: false });
  document.head.append(html("style", {}, STYLE));
  const note = html("button", { class: "deepscope-note", type: "button", title: "Hide" }, "Google Charts could not be loaded; DeepScope draws these charts. ✕");
  note.addEventListener("click", () => note.remove());
  document.body.append(note);
}

network.catch(() => undefined); // load() handles it
page.google = { charts };
