/** Google Charts, which torch-tb-profiler loads from the network, replaced by one that draws nothing. */

import type { Page } from "playwright-core";

const STUB = `
  const anything = new Proxy(function () {}, {
    get: (_, name) => name === Symbol.toPrimitive ? () => 0 : name === "then" ? undefined : anything,
    apply: () => anything,
    construct: () => anything,
  });
  window.google = {
    charts: { load: () => undefined, setOnLoadCallback: (ready) => ready() },
    visualization: anything,
  };
`;

export async function stubCharts(page: Page): Promise<void> {
  await page.route("https://www.gstatic.com/**", (route) => route.fulfill({ contentType: "text/javascript", body: STUB }));
}
