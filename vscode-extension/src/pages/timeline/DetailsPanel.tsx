/** All that is known of the chosen slice: its line, times, facts, what it caused, and how long its like are. */

import type { JSX } from "preact";
import { questions, type Choice, type Durations, type Found, type Link, type SliceDetails, type Timeline } from "../contract";
import { Facts, Terms } from "../parts/Figures";
import { Histogram } from "../parts/Histogram";
import { Place } from "../parts/Place";
import { useAsked } from "../source/answers";
import { count, duration } from "../words";
import { exact } from "./ruler";

interface Props {
  readonly of: Timeline;
  readonly choice: Choice;
  readonly details: SliceDetails;
  readonly jump: (slice: number) => void;
  readonly show: (found: Found) => void;
  readonly fit: () => void;
  readonly seek: (text: string) => void;
}

const MOST_LINES = 12;

export function DetailsPanel({ of, choice, details, jump, show, fit, seek }: Props): JSX.Element {
  const like = useAsked(questions.timeline_durations, { ...choice, name: details.name, kind: details.kind });
  const length = details.endNs - details.startNs;
  const track = of.tracks.find(({ id }) => id === details.track);
  return (
    <div class="details">
      <section>
        <h2 class="name">
          <span class="chip">{details.kind}</span> {details.name}
        </h2>
        <Terms
          class="times"
          of={[
            ["Duration", duration(length), exact(length)],
            ...(details.selfNs === length ? [] : [["Self time", duration(details.selfNs), exact(details.selfNs)] as const]),
            ["Start", exact(details.startNs)],
            ["Track", track?.title ?? ""],
          ]}
        />
        <p class="buttons">
          <button type="button" title="Fit (f)" onClick={fit}>
            Fit
          </button>
          <button type="button" title="Show all of this name" onClick={() => seek(details.name)}>
            Find all
          </button>
        </p>
        <Stack of={of} details={details} />
      </section>
      <section>
        {details.module !== "" && (
          <p>
            <span class="muted">Module</span> <code>{details.module}</code>
          </p>
        )}
        {details.facts.length > 0 && <Facts of={details.facts} />}
        <Links of={details} jump={jump} />
      </section>
      <section>{like?.state === "ready" && <Alike of={like.answer} lengthNs={length} chosen={details.slice} show={show} />}</section>
    </div>
  );
}

function Stack({ of, details }: { readonly of: Timeline; readonly details: SliceDetails }): JSX.Element | null {
  const owner = of.places[details.place];
  const stack = details.stack.flatMap((place) => of.places[place] ?? []);
  if (owner === undefined && stack.length === 0) {
    return null;
  }
  const rest = stack.filter((place, at) => at > 0 || place !== owner);
  return (
    <ol class="linestack" aria-label="Lines, the innermost first">
      {owner !== undefined && (
        <li class="strong">
          <Place of={owner} words={owner.title} />
        </li>
      )}
      {rest.slice(0, MOST_LINES).map((place, at) => (
        <li key={`${at} ${place.title}`}>
          <Place of={place} words={place.title} />
        </li>
      ))}
      {rest.length > MOST_LINES && <li class="muted">and {count(rest.length - MOST_LINES)} more</li>}
    </ol>
  );
}

interface AlikeProps {
  readonly of: Durations;
  readonly lengthNs: number;
  readonly chosen: number;
  readonly show: (found: Found) => void;
}

const MOST_LONGEST = 5;

/** How long all slices of one name are, and where the chosen one is among them. */
function Alike({ of, lengthNs, chosen, show }: AlikeProps): JSX.Element {
  return (
    <>
      <h3>{of.count === 1 ? "The only one of its name" : `${count(of.count)} of this name · ${duration(of.totalNs)}`}</h3>
      {of.count > 1 && of.largestNs > of.leastNs && (
        <>
          <Histogram of={of} ownNs={lengthNs} middle={`median ${duration(of.medianNs)} · p95 ${duration(of.p95Ns)}`} />
          <ol class="longest" aria-label="The longest">
            {of.longest.slice(0, MOST_LONGEST).map((found) => (
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

const LINK_WORDS = {
  launch: ["launches", "launched by"],
  backward: ["its backward", "backward of"],
  wait: ["waited for by", "waits for"],
} as const;
const MOST_LINKS = 20;

function Links({ of, jump }: { readonly of: SliceDetails; readonly jump: (slice: number) => void }): JSX.Element | null {
  if (of.links.length === 0) {
    return null;
  }
  return (
    <ul class="links">
      {of.links.slice(0, MOST_LINKS).map((link: Link) => {
        const isFrom = link.fromSlice === of.slice;
        const other = isFrom ? link.toSlice : link.fromSlice;
        const apart = link.toNs - link.fromNs;
        return (
          <li key={`${link.kind} ${link.fromSlice} ${link.toSlice}`}>
            <span class="muted">{LINK_WORDS[link.kind][isFrom ? 0 : 1]}</span>{" "}
            <button type="button" class="link" onClick={() => jump(other)}>
              {link.title}
            </button>{" "}
            {apart > 0 && <span class="muted">{duration(apart)} {isFrom ? "later" : "before"}</span>}
          </li>
        );
      })}
      {of.links.length > MOST_LINKS && <li class="muted">and {count(of.links.length - MOST_LINKS)} more</li>}
    </ul>
  );
}
