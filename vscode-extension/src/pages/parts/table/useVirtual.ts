/** The rows that are in sight, of any number. */

import { elementScroll, observeElementOffset, observeElementRect, Virtualizer, type VirtualItem } from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useLayoutEffect, useReducer, useState } from "preact/hooks";

interface InSight {
  readonly items: readonly VirtualItem[];
  /** Heights before and after them. */
  readonly before: number;
  readonly after: number;
  show(index: number): void;
}

/** `head` is the height of what stays above the rows. */
export function useVirtual(count: number, scroller: RefObject<HTMLElement>, row: number, head: number): InSight {
  const [, again] = useReducer((times: number) => times + 1, 0);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => row,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: 12,
    scrollMargin: head,
    scrollPaddingStart: head,
    onChange: again as () => void,
  };
  const [virtualizer] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(options));
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  const items = virtualizer.getVirtualItems();
  const [first, last] = [items[0], items.at(-1)];
  return {
    items,
    before: first === undefined ? 0 : first.start - head,
    after: last === undefined ? 0 : virtualizer.getTotalSize() + head - last.end,
    show: (index) => virtualizer.scrollToIndex(index, { align: "auto" }),
  };
}
