/** How wide an element is. */

import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

/** Calls with the width of an element in whole pixels, whenever that changes. */
export function useWidth(element: RefObject<HTMLElement>, changed: (width: number) => void): void {
  useEffect(() => {
    const { current } = element;
    if (current === null) {
      return undefined;
    }
    const observer = new ResizeObserver(() => changed(current.clientWidth));
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
}
