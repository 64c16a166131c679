/** What the browser knows and keeps: the theme's colours, an element's width, the clipboard. */

import { useEffect, useState } from "preact/hooks";
import type { RefObject } from "preact";

/** A number that changes with the theme: canvases know no CSS, and read the colours again. */
export function useThemeVersion(): number {
  const [version, setVersion] = useState(0);
  useEffect(() => watchTheme(() => setVersion((one) => one + 1)), []);
  return version;
}

/** Calls when the theme may have changed; the answer ends it. */
export function watchTheme(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  for (const element of [document.documentElement, document.body]) {
    observer.observe(element, { attributes: true, attributeFilter: ["class", "style", "data-theme", "data-vscode-theme-id"] });
  }
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", changed);
  };
}

/** The value of a CSS variable, `--tone0`, as it is at an element. */
export function colourOf(element: Element, variable: string): string {
  return getComputedStyle(element).getPropertyValue(variable).trim();
}

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
