/** Why the device had nothing to do, and on which lines. */

import type { JSX } from "preact";
import type { Idle } from "../contract";
import { Place } from "../parts/Place";
import { TimeBars } from "../parts/Lists";
import { share } from "../words";
import { PartsBar } from "./SplitBar";

export function IdleTime({ of }: { readonly of: Idle }): JSX.Element {
  return (
    <div class="columns">
      <section>
        <h2>Why the device idles</h2>
        <PartsBar parts={of.causes} />
      </section>
      <TimeBars
        level="h2"
          title="Lines on which it idles most"
          wholeNs={of.wholeNs}
          rows={of.lines.map(({ file, line, place, function: name, idleNs, cause }) => ({
            key: `${file}:${line}`,
            label: <Place of={{ file, line, place }} />,
            title: `${name} (${share(of.wholeNs > 0 ? idleNs / of.wholeNs : 0)} of the idle time)`,
            timeNs: idleNs,
            more: cause,
          }))}
      />
    </div>
  );
}
