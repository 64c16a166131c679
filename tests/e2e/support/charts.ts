/** Google Charts, which torch-tb-profiler loads from the network. The tests have none: what it would give is made here. */

import type { BrowserContext } from "playwright-core";

const LOADER = "https://www.gstatic.com/charts/loader.js";

/** Stands for Google's loader and all that it loads; draws nothing. */
const STAND_IN = `
  const anything = new Proxy(function () {}, {
    get: (_, name) => name === Symbol.toPrimitive ? () => 0 : name === "then" ? undefined : anything,
    apply: () => anything,
    construct: () => anything,
  });
  window.google = {
    isGoogles: true,
    charts: { load: () => Promise.resolve(), setOnLoadCallback: (ready) => ready() },
    visualization: anything,
  };
`;

/** Runs in the page: whether the charts are Google's own; undefined while there are none. */
export function isGooglesHere(): boolean | undefined {
  const { google } = window as unknown as { google?: { isGoogles?: boolean } };
  return google === undefined ? undefined : google.isGoogles === true;
}

/** The network as it is where Google can be reached; answers a function that takes it away. */
export async function googleReached(context: BrowserContext): Promise<() => Promise<void>> {
  await context.route(LOADER, (route) => route.fulfill({ contentType: "text/javascript", body: STAND_IN }));
  return () => context.unroute(LOADER);
}

/** The network behind a firewall that answers nothing. */
export async function googleSilent(context: BrowserContext): Promise<() => Promise<void>> {
  await context.route(LOADER, () => undefined);
  return () => context.unroute(LOADER);
}
