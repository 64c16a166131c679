/** What stands above the pages when the editor shows another run than they do. */

import type { JSX } from "preact";
import { go, useAddress } from "../app/address";
import { linkToRun } from "../app/baselines";

export function Newer({ forget }: { readonly forget: () => void }): JSX.Element | null {
  const address = useAddress();
  if (address.words["run"] === undefined) {
    return null;
  }
  const follow = (): void => {
    go(linkToRun(address, { id: "" }));
    forget();
  };
  return (
    <div class="newer" role="status">
      <span>The editor shows another run now.</span>
      <button type="button" onClick={follow}>
        Show it
      </button>
      <button type="button" onClick={forget}>
        Stay here
      </button>
    </div>
  );
}
