/** Light, dark, or as the system has it. Where the theme is that of what is around the pages, there is no choice. */

import type { JSX } from "preact";
import { isThemeGiven, useTheme, type Theme } from "./theme";

const NEXT: Readonly<Record<Theme, Theme>> = { auto: "light", light: "dark", dark: "auto" };
const WORDS: Readonly<Record<Theme, string>> = { auto: "System", light: "Light", dark: "Dark" };

export function ThemeButton(): JSX.Element | null {
  const [theme, choose] = useTheme();
  if (isThemeGiven()) {
    return null;
  }
  return (
    <button type="button" class="theme" title="Light or dark" aria-label={`Theme: ${WORDS[theme]}`} onClick={() => choose(NEXT[theme])}>
      {WORDS[theme]}
    </button>
  );
}
