/** The drawn timeline: keeps what is seen, moves it, and draws a frame when something changed. */

import type { Link, Timeline } from "../contract";
import { drawCharts, drawPinned, drawTracks } from "./drawTracks";
import { drawMarks } from "./drawMarks";
import { opaque, OVERVIEW, Overview } from "./overview";
import { drawRuler, RULER } from "./ruler";
import { covering, levelOf, type Piece, type Tile } from "./tiles";
import { beside, hitAt, middleOf, type Direction, type Hit } from "./hit";
import { Labels } from "./names";
import { lanesOf, pinned, pinnedHeight, seen, type Choices, type Lane } from "./layout";
import { Loader, type AskWindow } from "./loader";
import { Motion, toNs, type View } from "./view";
import { watchTheme } from "../parts/browser";
import { paletteOf, type Colouring, type Palette } from "./palette";
import type { Marks, Scene, Sought, Spot } from "./scene";

interface Elements {
  /** Scrolls over all lanes. */
  readonly scroller: HTMLElement;
  readonly base: HTMLCanvasElement;
  readonly ruler: HTMLCanvasElement;
  readonly overview: HTMLCanvasElement;
}

/** What the page tells the stage. */
export interface Shown {
  readonly choices: Choices;
  readonly colouring: Colouring;
  readonly sought: Sought | undefined;
  readonly chosen: Spot | undefined;
  readonly links: readonly Link[];
  readonly found: readonly Spot[];
  readonly stretch: View | undefined;
}

interface Told {
  /** The view came to rest. */
  settled(view: View): void;
  failed(message: string): void;
}

const NOTHING: Shown = {
  choices: { turned: new Set(), filter: "", hasHeads: false },
  colouring: "kind",
  sought: undefined,
  chosen: undefined,
  links: [],
  found: [],
  stretch: undefined,
};

export class Stage {
  readonly motion: Motion;
  readonly loader: Loader;
  lanes: readonly Lane[] = [];
  shown: Shown = NOTHING;
  width = 1;
  height = 1;
  private palette: Palette;
  private labels: Labels;
  private ratio = 1;
  private frame = 0;
  private isStale = true;
  private hovered: Hit | undefined;
  private pointerX: number | undefined;
  /** While one is being drawn with the pointer. */
  private marking: View | undefined;
  private settledAt: View | undefined;
  /** The tracks without what stands above them, while the view rests: the pointer's moves draw no track anew. */
  private readonly rest = document.createElement("canvas");
  private isResting = false;
  private readonly overview: Overview;
  private readonly ends: (() => void)[] = [];

  constructor(
    readonly of: Timeline,
    private readonly at: Elements,
    ask: AskWindow,
    private readonly told: Told,
    view: View,
  ) {
    this.motion = new Motion(view, Math.max(of.endNs, 1), () => this.request());
    this.loader = new Loader(this.whole, of.counters.map(({ id }) => id), ask, () => this.redraw(), (message) => told.failed(message));
    this.overview = new Overview(of);
    this.palette = paletteOf(document.documentElement);
    this.labels = this.newLabels();
    const sizes = new ResizeObserver(() => this.resize());
    sizes.observe(at.base);
    const scrolled = (): void => this.redraw();
    at.scroller.addEventListener("scroll", scrolled, { passive: true });
    const repaint = (): void => {
      this.palette = paletteOf(document.documentElement);
      this.redraw();
    };
    this.ends.push(watchTheme(repaint), () => sizes.disconnect(), () => at.scroller.removeEventListener("scroll", scrolled));
    this.resize();
  }

  get whole(): number {
    return Math.max(this.of.endNs, 1);
  }

  /** Where the pointer is, as a part of the width; the middle where it is elsewhere. */
  get pointerPlace(): number {
    return this.pointerX === undefined ? 0.5 : this.pointerX / this.width;
  }

  scroll(by: number): void {
    this.at.scroller.scrollTop += by;
  }

  get top(): number {
    return this.at.scroller.scrollTop;
  }
  end(): void {
    cancelAnimationFrame(this.frame);
    this.loader.end();
    this.ends.forEach((end) => end());
  }

  show(shown: Shown): void {
    if (shown.choices !== this.shown.choices || this.lanes.length === 0) {
      this.lanes = lanesOf(this.of, shown.choices);
    }
    this.loader.names.look(shown.sought?.text ?? "", shown.sought?.names);
    const isNew = shown.chosen !== this.shown.chosen;
    this.shown = shown;
    this.redraw();
    this.keepChosen(isNew);
  }

  /** Scrolls to what is chosen: the panel about it takes room. */
  private keepChosen(isHidden: boolean): void {
    if (isHidden && this.shown.chosen !== undefined) {
      this.reveal(this.shown.chosen);
    }
  }

  /** The pointer is at a place of the drawn part; undefined when it left. */
  point(x: number | undefined, y = 0): Hit | undefined {
    this.pointerX = x;
    this.hovered = x === undefined ? undefined : hitAt(this.scene(), x, y + this.top);
    this.request();
    return this.hovered;
  }

  mark(stretch: View | undefined): void {
    this.marking = stretch;
    this.request();
  }

  beside(from: Spot | undefined, direction: Direction): Hit | undefined {
    return from === undefined ? middleOf(this.scene()) : beside(this.scene(), from, direction);
  }

  /** Scrolls until a row of a track is seen. */
  reveal({ track, row }: Pick<Spot, "track" | "row">): void {
    const lane = this.lanes.find((one) => one.type === "track" && one.track.id === track);
    if (lane?.type === "track") {
      const y = lane.y + lane.head + row * lane.rowHeight;
      const above = pinnedHeight(this.lanes);
      if (lane.track.kind !== "steps" && (y < this.top + above + 4 || y + lane.rowHeight > this.top + this.height - 4)) {
        this.at.scroller.scrollTop = y - above - (this.height - above) / 3;
      }
    }
  }

  redraw(): void {
    this.isStale = true;
    this.request();
  }

  private request(): void {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame((now) => this.draw(now));
    }
  }

  private draw(now: number): void {
    this.frame = 0;
    const before = this.motion.view;
    const isMoving = this.motion.advance(now, this.width, this.pointerPlace);
    if (this.motion.view !== before) {
      this.isStale = true;
    }
    const scene = this.scene();
    this.drawBase(scene, isMoving);
    this.drawAbove(scene);
    if (isMoving) {
      this.request();
    } else if (this.motion.view !== this.settledAt) {
      this.settledAt = this.motion.view;
      this.told.settled(this.motion.view);
    }
  }

  private drawBase(scene: Scene, isMoving: boolean): void {
    const context = opaque(this.at.base);
    if (this.isStale || !this.isResting) {
      if (this.isStale) {
        this.want(scene);
      }
      this.isStale = false;
      drawTracks(context, scene);
      drawCharts(context, scene);
      drawPinned(context, scene);
      this.isResting = !isMoving;
      if (!isMoving) {
        opaque(this.rest).drawImage(this.at.base, 0, 0);
      }
    } else {
      context.drawImage(this.rest, 0, 0);
    }
  }

  private want(scene: Scene): void {
    // Where a motion leads is brought, not what it passes through.
    const goal = this.motion.goal;
    const tracks = seen(scene.lanes, scene.top - 200, scene.top + scene.height + 200);
    const wanted = tracks.flatMap((lane) => (lane.type === "track" && lane.track.slices > 0 ? [lane.track.id] : []));
    const whole = { begin: 0, end: this.whole };
    this.loader.want(goal, this.width, wanted, [whole, this.width, this.overview.tracks.map(({ id }) => id)]);
  }

  private drawAbove(scene: Scene): void {
    const marks: Marks = {
      hovered: this.hovered,
      chosen: this.shown.chosen,
      found: this.shown.found,
      links: this.shown.links,
      stretch: this.marking ?? this.shown.stretch,
      pointer: this.pointerX === undefined ? undefined : toNs(this.pointerX, scene.view, this.width),
    };
    drawMarks(opaque(this.at.base), scene, marks);
    drawRuler(opaque(this.at.ruler), this.palette, scene.view, this.width, this.ratio, marks);
    const whole = { begin: 0, end: this.whole };
    this.overview.draw(opaque(this.at.overview), scene, (track) => this.pieces(track, whole), marks.found);
  }

  scene(): Scene {
    const view = this.motion.view;
    const level = levelOf(view, this.width);
    const { counters } = this.loader;
    return {
      of: this.of,
      view,
      width: this.width,
      height: this.height,
      ratio: this.ratio,
      top: this.top,
      lanes: pinned(this.lanes, this.top),
      palette: this.palette,
      colouring: this.shown.colouring,
      names: this.loader.names,
      labels: this.labels,
      sought: this.shown.sought,
      tiles: (track) => this.pieces(track, view),
      charts: (counter) => covering(view, level, this.whole, (at, index) => counters.get(counter, at, index)),
    };
  }

  private pieces(track: number, view: View): readonly Piece<Tile>[] {
    const { tiles } = this.loader;
    return covering(view, levelOf(view, this.width), this.whole, (level, index) => tiles.get(track, level, index));
  }

  private newLabels(): Labels {
    const context = document.createElement("canvas").getContext("2d");
    if (context !== null) {
      context.font = `11px ${this.palette.font}`;
    }
    return new Labels((text) => context?.measureText(text).width ?? 7);
  }

  private resize(): void {
    const { base, ruler, overview } = this.at;
    this.ratio = window.devicePixelRatio;
    const before = this.height;
    this.width = Math.max(base.clientWidth, 1);
    this.height = Math.max(base.clientHeight, 1);
    this.keepChosen(this.height < before);
    const sizes: readonly (readonly [HTMLCanvasElement, number])[] = [
      [base, this.height],
      [this.rest, this.height],
      [ruler, RULER],
      [overview, OVERVIEW],
    ];
    for (const [canvas, height] of sizes) {
      canvas.width = Math.round(this.width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
    }
    this.overview.resize(this.width, this.ratio);
    this.redraw();
  }
}
