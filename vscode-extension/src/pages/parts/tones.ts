/** Which colour a kind of time has: the same on every page, whatever stands beside it. */

const PHASES = ["data", "forward", "backward", "optimizer", "other"];

/** By the words of a name, the first that fits. The timeline's palette has the same (`timeline/palette.ts`). */
const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [/idle|^other( wait)?$|no line|nothing|everything else/, "tone7"],
  [/communicat|collective|logging/, "tone3"],
  [/memcpy|memset|cop(y|ies)|non-compute|framework|checkpoint/, "tone5"],
  [/host|cpu|python|operator|validation/, "tone0"],
  [/wait|blocked|asleep/, "tone6"],
  [/data/, "tone1"],
  [/runtime|launch|first step/, "tone4"],
  [/kernel|comput|device|arithmetic|bytes|memory|training steps/, "tone2"],
];

/** The class of a phase of training, or of any other kind of time. */
export function toneOf(name: string): string {
  const phase = PHASES.indexOf(name);
  if (phase >= 0) {
    return `phase${phase}`;
  }
  return MEANINGS.find(([words]) => words.test(name.toLowerCase()))?.[1] ?? "tone6";
}
