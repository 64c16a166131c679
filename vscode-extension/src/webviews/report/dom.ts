/** Small words for building the page. Text is always set as text: names in a trace are a stranger's. */

type Child = Node | string;

/** An element of the page. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** An element of a drawing. */
export function svg(tag: string, attributes: Readonly<Record<string, string | number>> = {}, ...children: readonly Child[]): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}

/** A size in bytes with three digits: `1.50 MiB`. */
export function bytes(size: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, at] = [Math.abs(size), 0];
  while (value >= 1023.5 && at < units.length - 1) {
    [value, at] = [value / 1024, at + 1];
  }
  const digits = at === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return size === 0 ? "0" : `${size < 0 ? "-" : ""}${value.toFixed(digits)} ${units[at] ?? ""}`;
}
