/** Light, dark, or as the system has it. Inside VS Code the editor's theme counts, and there is no choice. */

import type { JSX } from "preact";
import { useTheme, type Theme } from "./theme";

const NEXT: Readonly<Record<Theme, Theme>> = { auto: "light", light: "dark", dark: "auto" };
const WORDS: Readonly<Record<Theme, string>> = { auto: "System", light: "Light", dark: "Dark" };

export function ThemeButton(): JSX.Element | null {
  const [theme, choose] = useTheme();
  if (document.body.dataset["door"] === "panel") {
    return null;
  }
  return (
    <button type="button" class="theme" title="Light or dark" aria-label={`Theme: ${WORDS[theme]}`} onClick={() => choose(NEXT[theme])}>
      {WORDS[theme]}
    </button>
  );
}
