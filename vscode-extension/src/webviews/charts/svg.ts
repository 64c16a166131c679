/** Elements of a drawing. Words become text, never markup: names in them come from traces. */

const SVG = "http://www.w3.org/2000/svg";

/** Colours that stay apart for most colour-blind readers. */
export const COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#997700", "#555555", "#44aa99", "#882255"];

export function colour(at: number, given: readonly string[] | undefined): string {
  const colours = given !== undefined && given.length > 0 ? given : COLOURS;
  return colours[at % colours.length] ?? "#555555";
}

export function svg<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string | number>> = {},
  ...children: readonly (Node | string)[]
): SVGElementTagNameMap[Name] {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  }
  element.append(...children);
  return element;
}

export function html<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** The words of a piece of HTML. It is parsed in a document of its own, where nothing runs and nothing is loaded. */
export function wordsOf(markup: string): string {
  if (!/[<&]/.test(markup)) {
    return markup;
  }
  const spaced = markup.replace(/<br\s*\/?>|<\/(?:div|p|tr|li)>/gi, "\n");
  return (new DOMParser().parseFromString(spaced, "text/html").body.textContent || "").trim();
}

/** A word that takes so many letters at most. */
export function cut(word: string, letters: number): string {
  return word.length <= letters ? word : `${word.slice(0, Math.max(letters - 1, 1))}…`;
}

/** The drawing that fills a container, empty. */
export function canvas(container: Element, given: number | undefined, title: string): { root: SVGSVGElement; width: number; height: number } {
  const width = container.clientWidth || 600;
  const height = given ?? (container.clientHeight || 300);
  const root = svg("svg", { width, height, role: "img", "aria-label": title, "font-family": "Roboto, Arial, sans-serif", "font-size": 12 });
  container.replaceChildren(root);
  return { root, width, height };
}
