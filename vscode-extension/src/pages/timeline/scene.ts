/** What is drawn: everything that the drawing functions need, and nothing that they change. */

import type { Link, Timeline } from "../contract";
import type { CounterTile, Piece, Tile } from "./tiles";
import type { Labels, Names } from "./names";
import type { Lane } from "./layout";
import type { Colouring, Palette } from "./palette";
import type { View } from "./view";

/** A slice that stands out: under the pointer, chosen, found. */
export interface Spot {
  readonly track: number;
  readonly row: number;
  readonly start: number;
  readonly end: number;
}

/** What is sought, so that the rest is dimmed: a text in names, or lines (indices into `Timeline.places`). */
export interface Sought {
  readonly text: string;
  /** Names of what was found: a recorded name may hold the text where the shown one does not. */
  readonly names: ReadonlySet<string>;
  readonly places: ReadonlySet<number> | undefined;
}

export interface Scene {
  readonly of: Timeline;
  readonly view: View;
  /** Of the drawn part, in pixels of the page. */
  readonly width: number;
  readonly height: number;
  /** Pixels of the screen for each. */
  readonly ratio: number;
  readonly top: number;
  readonly lanes: readonly Lane[];
  readonly palette: Palette;
  readonly colouring: Colouring;
  readonly names: Names;
  readonly labels: Labels;
  readonly sought: Sought | undefined;
  readonly tiles: (track: number) => readonly Piece<Tile>[];
  readonly charts: (counter: number) => readonly Piece<CounterTile>[];
}

/** What stands above the slices and follows the pointer. */
export interface Marks {
  readonly hovered: Spot | undefined;
  readonly chosen: Spot | undefined;
  readonly found: readonly Spot[];
  readonly links: readonly Link[];
  /** A marked stretch of time. */
  readonly stretch: View | undefined;
  /** Where the pointer is. */
  readonly pointer: number | undefined;
}
