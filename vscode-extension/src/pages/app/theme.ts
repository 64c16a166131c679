/** Light or dark: the reader's choice, else the system's; inside VS Code the editor's. */

import { useEffect, useState } from "preact/hooks";

export type Theme = "auto" | "light" | "dark";
const KEY = "deepscope.theme";

/** The chosen theme, and how to choose another one. */
export function useTheme(): readonly [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(remembered);
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  return [
    theme,
    (chosen) => {
      setTheme(chosen);
      try {
        window.localStorage.setItem(KEY, chosen);
      } catch {
        // Not remembered where the browser keeps nothing.
      }
    },
  ];
}

function remembered(): Theme {
  try {
    const kept = window.localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "auto";
  } catch {
    return "auto";
  }
}
