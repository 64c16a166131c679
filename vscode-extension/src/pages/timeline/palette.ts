/** Colours of slices, from the pages' style, so that they follow its theme. */

import type { SliceKind } from "../contract";

export interface Palette {
  readonly background: string;
  readonly surface: string;
  readonly border: string;
  readonly strong: string;
  readonly text: string;
  readonly muted: string;
  readonly accent: string;
  readonly accentSoft: string;
  readonly marker: string;
  readonly heat: string;
  readonly font: string;
  /** By `chartOf`. */
  readonly charts: readonly string[];
  /** Fills, and the colour of the words on each. */
  readonly fills: readonly string[];
  readonly words: readonly string[];
  /** What a search does not find. */
  readonly dim: string;
  readonly dimWords: string;
}

export type Colouring = "kind" | "line" | "name";

type Rgb = readonly [number, number, number];

/** Each kind's tone and how much of it there is, of the rest the background. */
const KINDS: Readonly<Record<SliceKind, readonly [string, number]>> = {
  step: ["--tone7", 0.4],
  phase: ["--tone7", 0.6],
  annotation: ["--tone6", 0.6],
  frame: ["--tone7", 0.22],
  line: ["--tone1", 0.78],
  library: ["--tone7", 0.34],
  module: ["--tone3", 0.6],
  operator: ["--tone0", 0.62],
  runtime: ["--tone4", 0.55],
  kernel: ["--tone2", 0.72],
  copy: ["--tone5", 0.72],
  collective: ["--tone3", 0.9],
  span: ["--tone7", 0.45],
  other: ["--tone7", 0.3],
};
const PHASES: Readonly<Record<string, string>> = {
  data: "--tone1",
  forward: "--tone0",
  backward: "--tone2",
  optimizer: "--tone3",
};
/** What counters count, by their titles, and its tone; the last is that of all others. */
const CHARTS: readonly (readonly [RegExp, string])[] = [
  [/queue|launch/, "--tone4"],
  [/memory|bytes|allocated|reserved/, "--tone3"],
  [/busy|occupancy|device|gpu|sm /, "--tone2"],
  [/cpu|core|load|thread/, "--tone0"],
  [/disk|read|writ|i\/o/, "--tone1"],
  [/network|receiv|sent/, "--tone6"],
  [/power|temperature|clock|watt/, "--tone5"],
  [/(?:)/, "--tone7"],
];
/** A counter's place in `Palette.charts`. */
export function chartOf(title: string): number {
  return CHARTS.findIndex(([words]) => words.test(title.toLowerCase()));
}
const TONES = 7;
/** Each colour has so many shades, for neighbours of one kind. */
const SHADES = 3;
const SHADE = 0.1;
const ORDER = Object.keys(KINDS) as SliceKind[];
const FIRST_TONE = ORDER.length * SHADES;
const FIRST_PHASE = FIRST_TONE + TONES * SHADES;

/** The colour's number of a slice; `hash` is its name's, `place` its line. */
export function fillOf(kind: SliceKind, name: string, hash: number, place: number, by: Colouring): number {
  if (kind === "phase") {
    const at = Object.keys(PHASES).findIndex((phase) => name.toLowerCase().includes(phase));
    return at < 0 ? ORDER.indexOf(kind) * SHADES : FIRST_PHASE + at;
  }
  if (by === "kind" || (kind !== "kernel" && kind !== "copy")) {
    return ORDER.indexOf(kind) * SHADES + (hash % SHADES);
  }
  if (by === "line") {
    return place < 0 ? ORDER.indexOf("other") * SHADES : FIRST_TONE + ((place * 5) % TONES) * SHADES + (Math.floor(place / TONES) % SHADES);
  }
  return FIRST_TONE + (hash % (TONES * SHADES));
}

/** The colours as the page's style has them at this moment. */
export function paletteOf(element: Element): Palette {
  const style = getComputedStyle(element);
  const resolve = resolver();
  const colour = (name: string): Rgb => resolve(style.getPropertyValue(name).trim());
  const background = colour("--background");
  const shades = (tone: Rgb, part: number): Rgb[] =>
    Array.from({ length: SHADES }, (_, shade) => mixed(tone, background, Math.max(part - shade * SHADE, 0.1)));
  const fills = [
    ...ORDER.flatMap((kind) => shades(colour(KINDS[kind][0]), KINDS[kind][1])),
    ...Array.from({ length: TONES }, (_, tone) => shades(colour(`--tone${tone}`), 0.74)).flat(),
    ...Object.values(PHASES).map((tone) => mixed(colour(tone), background, 0.6)),
  ];
  const dim = mixed(colour("--muted"), background, 0.13);
  const heat = style.getPropertyValue("--heat").trim();
  return {
    background: css(background),
    surface: css(colour("--surface")),
    border: css(colour("--border")),
    strong: css(colour("--border-strong")),
    text: css(colour("--text")),
    muted: css(colour("--muted")),
    accent: css(colour("--accent")),
    accentSoft: css(colour("--accent-soft")),
    marker: css(colour("--marker")),
    heat: css(resolve(`rgb(${heat})`)),
    font: getComputedStyle(document.body).fontFamily,
    charts: CHARTS.map(([, tone]) => css(colour(tone))),
    fills: fills.map(css),
    words: fills.map((fill) => (luminance(fill) > 0.2 ? "#14171c" : "#ffffff")),
    dim: css(dim),
    dimWords: css(mixed(colour("--muted"), background, 0.7)),
  };
}

/** Any colour of CSS as numbers, as a canvas understands it. */
function resolver(): (colour: string) => Rgb {
  const context = document.createElement("canvas").getContext("2d");
  return (colour) => {
    if (context === null) {
      return [128, 128, 128];
    }
    context.fillStyle = "#808080";
    context.fillStyle = colour;
    const said = context.fillStyle;
    const hex = /^#(..)(..)(..)$/.exec(said)?.slice(1).map((pair) => parseInt(pair, 16));
    const [red = 128, green = 128, blue = 128] = hex ?? (said.match(/[\d.]+/g) ?? []).map(Number);
    return [red, green, blue];
  };
}

function mixed(one: Rgb, other: Rgb, part: number): Rgb {
  const at = (place: 0 | 1 | 2): number => Math.round(one[place] * part + other[place] * (1 - part));
  return [at(0), at(1), at(2)];
}

function css([red, green, blue]: Rgb): string {
  return `rgb(${red} ${green} ${blue})`;
}

/** Relative luminance of WCAG 2. */
function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((part) => (part <= 10 ? part / 3294 : ((part / 255 + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
