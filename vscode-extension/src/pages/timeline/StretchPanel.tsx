/** The sums of a marked stretch: by line, kernel and operator; how busy each track was; what counters did. */

import type { ComponentChildren, JSX } from "preact";
import type { Busy, Change, Counter, Selection, Sum, Timeline } from "../contract";
import { Place } from "../parts/Place";
import { count, duration, share, valueWords } from "../words";
import { exact } from "./ruler";

interface Props {
  readonly of: Timeline;
  readonly sums: Selection;
  readonly fit: () => void;
  readonly clear: () => void;
  readonly seek: (text: string) => void;
}

const MOST = 14;

export function StretchPanel({ of, sums, fit, clear, seek }: Props): JSX.Element {
  const length = sums.endNs - sums.beginNs;
  const work = sums.lines.reduce((sum, line) => sum + line.timeNs, 0);
  const hasDevice = sums.devices.length > 0;
  return (
    <div class="stretch">
      <header>
        <h2 title={`${exact(sums.beginNs)} to ${exact(sums.endNs)}`}>In these {duration(length)}:</h2>
        <span>
          {duration(work)} {hasDevice ? "device work" : "operators’ self time"}
          {sums.devices.map((device, at) => (
            <span key={device} class="muted">
              {" "}
              · device {device} idle {duration(sums.idleNs[at] ?? 0)} ({share((sums.idleNs[at] ?? 0) / Math.max(length, 1))})
            </span>
          ))}
        </span>
        <span class="grow" />
        <button type="button" onClick={fit}>
          Fit
        </button>
        <button type="button" title="Unmark (Esc)" onClick={clear}>
          Unmark
        </button>
      </header>
      <div class="sums">
        <Sums
          title={hasDevice ? "Lines · device" : "Lines · operators"}
          of={sums.lines}
          whole={work}
          cell={(sum) => {
            const place = of.places[sum.place];
            return place === undefined ? <span class="muted">no line</span> : <Place of={place} words={place.title} />;
          }}
        />
        {sums.kernels.length > 0 && <Sums title="Kernels and copies" of={sums.kernels} whole={work} cell={(sum) => <Name of={sum} seek={seek} />} />}
        <Sums
          title="Operators · self time"
          of={sums.operators}
          whole={sums.operators.reduce((sum, one) => sum + one.timeNs, 0)}
          cell={(sum) => <Name of={sum} seek={seek} />}
        />
        <section>
          <Tracks of={of} busy={sums.busy} length={length} />
          {sums.counters.length > 0 && <Counters of={of.counters} changes={sums.counters} />}
        </section>
      </div>
    </div>
  );
}

interface SumsProps {
  readonly title: string;
  readonly of: readonly Sum[];
  readonly whole: number;
  readonly cell: (sum: Sum) => ComponentChildren;
}

function Sums({ title, of, whole, cell }: SumsProps): JSX.Element {
  const rest = of.slice(MOST);
  return (
    <section>
      <h3>{title}</h3>
      {of.length === 0 && <p class="muted">none</p>}
      <table>
        <tbody>
          {of.slice(0, MOST).map((sum) => (
            <tr key={`${sum.kind} ${sum.place} ${sum.name}`} title={`${sum.name}: ${exact(sum.timeNs)}, ${count(sum.count)} times`}>
              <td class="what">{cell(sum)}</td>
              <td class="number">{duration(sum.timeNs)}</td>
              <td class="number muted">{share(whole > 0 ? sum.timeNs / whole : 0)}</td>
              <td class="number muted">×{count(sum.count)}</td>
            </tr>
          ))}
          {rest.length > 0 && (
            <tr class="muted">
              <td class="what">{count(rest.length)} more</td>
              <td class="number">{duration(rest.reduce((sum, one) => sum + one.timeNs, 0))}</td>
              <td colSpan={2} />
            </tr>
          )}
        </tbody>
      </table>
    </section>
  );
}

/** A name that can be searched for; the rest of the names together cannot. */
function Name({ of, seek }: { readonly of: Sum; readonly seek: (text: string) => void }): JSX.Element {
  return of.name === "(others)" ? (
    <span class="muted">{of.name}</span>
  ) : (
    <button type="button" class="link" onClick={() => seek(of.name)}>
      {of.name}
    </button>
  );
}

function Tracks({ of, busy, length }: { readonly of: Timeline; readonly busy: readonly Busy[]; readonly length: number }): JSX.Element {
  const tracks = new Map(of.tracks.map((track) => [track.id, track]));
  const rows = busy.filter(({ busyNs, track }) => busyNs > 0 && tracks.get(track)?.kind !== "steps");
  return (
    <>
      <h3>Busy</h3>
      <table>
        <tbody>
          {rows.slice(0, MOST).map(({ track, busyNs }) => (
            <tr key={track}>
              <td class="what">{tracks.get(track)?.title ?? ""}</td>
              <td class="number">{duration(busyNs)}</td>
              <td class="number muted">{share(busyNs / Math.max(length, 1))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Counters({ of, changes }: { readonly of: readonly Counter[]; readonly changes: readonly Change[] }): JSX.Element {
  return (
    <>
      <h3>Counters</h3>
      <table class="changes">
        <tbody>
          {changes.map((change) => {
            const counter = of.find(({ id }) => id === change.counter);
            const words = (value: number): string => valueWords(value, counter?.unit ?? "count");
            return (
              <tr key={change.counter} title={`least ${words(change.least)}, mean ${words(change.mean)}`}>
                <td class="what">{counter?.title ?? ""}</td>
                <td class="number">
                  {words(change.first)} → {words(change.last)}
                </td>
                <td class="number muted">≤ {words(change.largest)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </>
  );
}
