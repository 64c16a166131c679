/** Words at the pointer. */

import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Timeline } from "../contract";
import { count, duration, share } from "../words";
import type { Hit } from "./hit";

export interface Pointed {
  readonly hit: Hit;
  readonly name: string;
  readonly x: number;
  readonly y: number;
}

interface Props {
  readonly of: Timeline;
  /** Is given what shows a slice's words, so that the pointer's moves draw nothing else anew. */
  readonly listen: (show: (pointed: Pointed | undefined) => void) => void;
}

const APART = 14;

export function Tooltip({ of, listen }: Props): JSX.Element | null {
  const [pointed, point] = useState<Pointed | undefined>();
  listen(point);
  return pointed === undefined ? null : <Words of={of} {...pointed} />;
}

function Words({ of, hit, name, x, y }: Pointed & { readonly of: Timeline }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    const parent = element?.offsetParent;
    if (element != null && parent != null) {
      const left = x + APART + element.offsetWidth > parent.clientWidth ? x - APART - element.offsetWidth : x + APART;
      const top = y + APART + element.offsetHeight > parent.clientHeight ? y - APART - element.offsetHeight : y + APART;
      element.style.transform = `translate(${Math.max(left, 2)}px, ${Math.max(top, 2)}px)`;
    }
  });
  const length = hit.end - hit.start;
  const place = of.places[hit.place];
  const kind = of.kinds[hit.kind] ?? "other";
  const isJoined = hit.count > 1;
  return (
    <div class="tip" ref={box} role="tooltip">
      <strong>{name}</strong>
      <span>
        {duration(length)}
        <span class="muted">
          {isJoined ? ` · ${count(hit.count)} slices, ${share(hit.busy / Math.max(length, 1))} covered; zoom in to part them` : ` · ${kind}`}
        </span>
      </span>
      {place !== undefined && place.title !== name && <span class="muted">{place.title}</span>}
    </div>
  );
}
