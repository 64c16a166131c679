/** What all charts have: a container, listeners, a selection. */

/** The options that torch-tb-profiler gives, as far as these charts heed them. */
export interface Options {
  readonly title?: string;
  readonly height?: number | string;
  readonly isStacked?: boolean;
  readonly colors?: readonly string[];
  readonly hAxis?: { readonly title?: string };
  readonly vAxis?: { readonly title?: string };
  readonly series?: Readonly<Record<number, { readonly type?: string; readonly targetAxisIndex?: number }>>;
  readonly sortColumn?: number;
  readonly sortAscending?: boolean;
}

type Selected = readonly { readonly row: number; readonly column: number }[];

export abstract class Chart {
  /** Told of a selection, of which the page then asks. */
  readonly onSelect: (() => void)[] = [];
  private selected: Selected = [];

  constructor(protected readonly container: HTMLElement) {}

  clearChart(): void {
    this.container.replaceChildren();
  }

  getSelection(): Selected {
    return this.selected;
  }

  setSelection(selected: Selected = []): void {
    this.selected = selected;
  }

  protected select(row: number, column: number): void {
    this.selected = [{ row, column }];
    this.onSelect.forEach((told) => told());
  }
}

/** Colours that stay apart for most colour-blind readers. */
const COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#997700", "#555555", "#44aa99", "#882255"];

export function colour(at: number, given: readonly string[] = COLOURS): string {
  return given[at % given.length] ?? "#555555";
}

/** Words become text, never markup: names in them come from traces. */
export function html<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  element.append(...children);
  return element;
}

/** The words of a piece of HTML. It is parsed in a document of its own, where nothing runs and nothing is loaded. */
export function wordsOf(markup: string): string {
  const spaced = markup.replace(/<br\s*\/?>|<\/(?:div|p|tr|li)>/gi, "\n");
  return /[<&]/.test(markup) ? (new DOMParser().parseFromString(spaced, "text/html").body.textContent || "").trim() : markup;
}
