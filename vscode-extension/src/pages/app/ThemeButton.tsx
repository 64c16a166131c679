/** Light, dark, or as the system has it. In TensorBoard its theme counts, in VS Code the editor's. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

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

type Theme = "auto" | "light" | "dark";
const KEY = "deepscope.theme";
/** On the body of TensorBoard's page while it is dark. */
const TENSORBOARD_DARK = "dark-mode";

/** The chosen theme, and how to choose another one. */
function useTheme(): readonly [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(remembered);
  const board = tensorBoard();
  const [isDark, setDark] = useState(isDarkIn(board));
  useEffect(() => {
    document.documentElement.dataset["theme"] = board === undefined ? theme : isDark ? "dark" : "light";
  }, [theme, board, isDark]);
  useEffect(() => {
    if (board === undefined) {
      return undefined;
    }
    const watcher = new MutationObserver(() => setDark(isDarkIn(board)));
    watcher.observe(board, { attributes: true, attributeFilter: ["class"] });
    return () => watcher.disconnect();
  }, [board]);
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

/** Whether the pages have the colours of what is around them. */
function isThemeGiven(): boolean {
  return document.body.dataset["door"] === "panel" || tensorBoard() !== undefined;
}

/** The body of the page that holds these, where that is TensorBoard. */
function tensorBoard(): HTMLElement | undefined {
  if (document.body.dataset["door"] !== "tensorboard" || window.parent === window) {
    return undefined;
  }
  try {
    return window.parent.document.body;
  } catch {
    return undefined; // a page of another origin
  }
}

function isDarkIn(board: HTMLElement | undefined): boolean {
  return board?.classList.contains(TENSORBOARD_DARK) ?? false;
}

function remembered(): Theme {
  try {
    const kept = window.localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "auto";
  } catch {
    return "auto";
  }
}
