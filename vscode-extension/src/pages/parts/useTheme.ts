/** Canvases know no CSS: they read the colours, and read them again when the theme changes. */

import { useEffect, useState } from "preact/hooks";

/** A number that changes with the theme. */
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
