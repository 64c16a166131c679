/** How long the runs of one name are: a histogram over growing bins, and the longest ones. */

import type { JSX } from "preact";
import { linkTo, useAddress, type Address } from "../app/address";
import { questions, type Durations, type DurationsOf, type Found, type Header } from "../contract";
import { Answer, useAsked, useSource, WAITING } from "../source/answers";
import { count, duration } from "../words";
import "./histogram.css";

interface Props {
  readonly asked: DurationsOf;
  readonly header: Header;
}

/** The durations in the trace, where there is a server to ask. What is of no slice there is not shown. */
export function DurationsInTrace({ asked, header }: Props): JSX.Element | null {
  const { isServed } = useSource();
  const found = useAsked(questions.timeline_durations, isServed ? asked : undefined, false);
  if (!isServed || found?.state === "failed") {
    return null;
  }
  const scope = header.ranks.length > 1 && asked.rank == null ? ` of rank ${header.ranks[0] ?? 0}` : header.step === null ? "" : " of all steps";
  return (
    <section>
      <h3>How long they are</h3>
      <Answer of={found ?? WAITING}>
        {(durations) => (
          <>
            <Histogram of={durations} />
            <p class="muted">
              {count(durations.count)} in the trace{scope}: median {duration(durations.medianNs)}, p95 {duration(durations.p95Ns)}
            </p>
            {durations.count > 1 && <Longest of={durations.longest} />}
          </>
        )}
      </Answer>
    </section>
  );
}

interface HistogramProps {
  readonly of: Durations;
  /** A duration whose bin stands out. */
  readonly ownNs?: number;
  /** What stands below the middle of the axis; the duration there without. */
  readonly middle?: string;
}

/** Bars over bins whose widths grow by a constant ratio: a logarithmic axis. */
export function Histogram({ of, ownNs, middle }: HistogramProps): JSX.Element {
  const most = Math.max(...of.counts, 1);
  const [first, last] = [of.edgesNs[0] ?? 1, of.edgesNs.at(-1) ?? 1];
  const at = (ns: number): number => (last > first ? (100 * Math.log(Math.max(ns, first) / first)) / Math.log(last / first) : 0);
  const own = ownNs === undefined ? -1 : of.counts.findIndex((_, bin) => ownNs >= (of.edgesNs[bin] ?? 0) && ownNs <= (of.edgesNs[bin + 1] ?? 0));
  return (
    <figure class="histogram" aria-label={`${of.count} durations from ${duration(of.leastNs)} to ${duration(of.largestNs)}`}>
      <div class="plot">
        {of.counts.map((number, bin) => (
          <span key={bin} class={`bin ${bin === own ? "own" : ""}`} title={`${duration(of.edgesNs[bin] ?? 0)} to ${duration(of.edgesNs[bin + 1] ?? 0)}: ${count(number)}`}>
            <span class="fill" style={{ height: `${number > 0 ? Math.max((100 * number) / most, 2) : 0}%` }} />
          </span>
        ))}
        {of.count > 1 && <span class="median" style={{ left: `${Math.min(at(of.medianNs), 100)}%` }} title={`median ${duration(of.medianNs)}`} />}
      </div>
      <div class="axis muted">
        <span>{duration(of.leastNs)}</span>
        {of.largestNs > of.leastNs && <span>{middle ?? duration(Math.sqrt(first * last))}</span>}
        {of.largestNs > of.leastNs && <span>{duration(of.largestNs)}</span>}
      </div>
    </figure>
  );
}

function Longest({ of }: { readonly of: readonly Found[] }): JSX.Element {
  const address = useAddress();
  return (
    <p>
      The longest:{" "}
      {of.slice(0, 5).map((one, at) => (
        <span key={one.slice}>
          {at > 0 && ", "}
          <a href={linkTo(address, "timeline", inTimeline(one))} title="Show it in the timeline">
            {duration(one.endNs - one.startNs)}
          </a>
        </span>
      ))}
    </p>
  );
}

/** A slice with what is around it. */
function inTimeline({ slice, startNs, endNs }: Found): Address["words"] {
  const around = Math.max(endNs - startNs, 1000);
  return { slice: String(slice), from: String(Math.max(Math.round(startNs - around), 0)), to: String(Math.round(endNs + around)) };
}
