/** The browser's clipboard. */

import { useEffect, useState } from "preact/hooks";

const SHOWN_MS = 2000;

/** For a moment after a copy how it went, in words, else ""; and what copies a text. */
export function useCopy(): readonly [string, (text: string) => void] {
  const [outcome, setOutcome] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setOutcome(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = (text: string): void => {
    writeText(text).then(
      () => setOutcome("Copied"),
      () => setOutcome("The browser refused"),
    );
  };
  return [outcome, copy];
}

/** Rejects, too, where a page without https has no clipboard at all. */
export async function writeText(text: string): Promise<void> {
  await navigator.clipboard.writeText(text);
}
