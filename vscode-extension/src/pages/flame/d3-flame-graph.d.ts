/** The part of d3-flame-graph's interface that is used; the package has no types of its own. */
declare module "d3-flame-graph" {
  import type { Selection } from "d3-selection";

  export interface PlacedNode<T> {
    readonly data: T;
    highlight?: boolean;
    /** From the node itself up to the root. */
    ancestors(): PlacedNode<T>[];
    each(visit: (node: PlacedNode<T>) => void): unknown;
  }

  export interface FlameGraph<T> {
    (selection: Selection<HTMLElement, T, null, undefined>): void;
    width(size: number): this;
    cellHeight(size: number): this;
    minFrameSize(size: number): this;
    transitionDuration(ms: number): this;
    inverted(isInverted: boolean): this;
    sort(compare: (one: PlacedNode<T>, other: PlacedNode<T>) => number): this;
    setLabelHandler(label: (node: PlacedNode<T>) => string): this;
    setColorMapper(colour: (node: PlacedNode<T>, original: string) => string): this;
    setSearchMatch(matches: (node: PlacedNode<T>, term: string) => boolean): this;
    setDetailsElement(element: HTMLElement): this;
    setSearchHandler(found: (results: readonly PlacedNode<T>[], sum: number, total: number) => void): this;
    onClick(clicked: (node: PlacedNode<T>) => void): this;
    search(term: string): void;
    clear(): void;
    resetZoom(): void;
    zoomTo(node: PlacedNode<T>): void;
    destroy(): this;
  }

  export default function flamegraph<T>(): FlameGraph<T>;
}
