/** How long all slices of one name are, and where the chosen one is among them. */

import type { JSX } from "preact";
import type { Durations, Found } from "../contract";
import { count, duration } from "../words";
import { exact } from "./ruler";

interface Props {
  readonly of: Durations;
  readonly length: number;
  readonly chosen: number;
  readonly show: (found: Found) => void;
}

const HEIGHT = 46;
const MOST = 5;

export function Histogram({ of, length, chosen, show }: Props): JSX.Element {
  const most = Math.max(...of.counts, 1);
  const own = of.counts.findIndex((_, at) => length >= (of.edgesNs[at] ?? 0) && length <= (of.edgesNs[at + 1] ?? 0));
  const words = `${count(of.count)} of this name, ${duration(of.totalNs)} in all; median ${duration(of.medianNs)}, 95 % within ${duration(of.p95Ns)}`;
  return (
    <>
      <h3>
        {of.count === 1 ? "The only one of its name" : `${count(of.count)} of this name · ${duration(of.totalNs)}`}
      </h3>
      {of.count > 1 && of.largestNs > of.leastNs && (
        <>
          <div class="bins" role="img" aria-label={words}>
            {of.counts.map((bin, at) => (
              <span
                key={at}
                class={at === own ? "own" : ""}
                title={`${duration(of.edgesNs[at] ?? 0)} to ${duration(of.edgesNs[at + 1] ?? 0)}: ${count(bin)}`}
                style={{ height: `${bin === 0 ? 0 : Math.max((bin / most) * HEIGHT, 2)}px` }}
              />
            ))}
          </div>
          <p class="scale muted">
            <span>{duration(of.leastNs)}</span>
            <span>
              median {duration(of.medianNs)} · p95 {duration(of.p95Ns)}
            </span>
            <span>{duration(of.largestNs)}</span>
          </p>
          <ol class="longest" aria-label="The longest">
            {of.longest.slice(0, MOST).map((found) => (
              <li key={found.slice}>
                <button type="button" class="link" aria-current={found.slice === chosen} onClick={() => show(found)}>
                  {duration(found.endNs - found.startNs)}
                </button>{" "}
                <span class="muted">at {exact(found.startNs)}</span>
              </li>
            ))}
          </ol>
        </>
      )}
    </>
  );
}
