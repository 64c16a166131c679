/** Canvases know no CSS: they read the colours, and read them again when the theme changes. */

import { useEffect, useState } from "preact/hooks";

/** A number that changes with the theme. */
export function useThemeVersion(): number {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const changed = (): void => setVersion((one) => one + 1);
    const observer = new MutationObserver(changed);
    for (const element of [document.documentElement, document.body]) {
      observer.observe(element, { attributes: true, attributeFilter: ["data-theme", "class", "style"] });
    }
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", changed);
    return () => {
      observer.disconnect();
      system.removeEventListener("change", changed);
    };
  }, []);
  return version;
}

/** The value of a CSS variable, `--tone0`, as it is at an element. */
export function colourOf(element: Element, variable: string): string {
  return getComputedStyle(element).getPropertyValue(variable).trim();
}
