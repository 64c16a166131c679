/** Versions of Python packages, as far as the extension compares them. */

/** Whether `version` (`1.2.3`, `1.2.0rc1`, `0.4.dev3+g12`) is at least `wanted`, by its numbers. */
export function isAtLeast(version: string, wanted: string): boolean {
  const [have, want] = [release(version), release(wanted)];
  for (let part = 0; part < Math.max(have.length, want.length); part += 1) {
    const difference = (have[part] ?? 0) - (want[part] ?? 0);
    if (difference !== 0) {
      return difference > 0;
    }
  }
  return true;
}

function release(version: string): number[] {
  const match = /^\s*v?(?:\d+!)?(\d+(?:\.\d+)*)/.exec(version);
  return (match?.[1] ?? "0").split(".").map(Number);
}
