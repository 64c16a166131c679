/** What all charts have: a container, listeners, a selection. */

export type Listener = (event: { readonly row?: number; readonly column?: number }) => void;
export interface Selected {
  readonly row?: number;
  readonly column?: number;
}

export abstract class Chart {
  private readonly listeners = new Map<string, Set<Listener>>();
  private selected: readonly Selected[] = [];

  constructor(protected readonly container: Element) {}

  listen(event: string, listener: Listener): void {
    const listeners = this.listeners.get(event) ?? new Set();
    listeners.add(listener);
    this.listeners.set(event, listeners);
  }

  /** Answers a function that takes the listener away. */
  unlisten(event: string, listener: Listener): void {
    this.listeners.get(event)?.delete(listener);
  }

  clearChart(): void {
    this.container.replaceChildren();
  }

  getSelection(): readonly Selected[] {
    return this.selected;
  }

  setSelection(selected: readonly Selected[] = []): void {
    this.selected = selected;
    const wanted = new Set(selected.map(({ row, column }) => `${row ?? ""}/${column ?? ""}`));
    for (const mark of this.container.querySelectorAll("[data-row]")) {
      const [row, column] = [mark.getAttribute("data-row"), mark.getAttribute("data-column")];
      mark.toggleAttribute("data-selected", wanted.has(`${row}/${column}`) || wanted.has(`${row}/`));
    }
  }

  protected tell(event: string, about: Selected = {}): void {
    for (const listener of this.listeners.get(event) ?? []) {
      listener(about);
    }
  }

  /** A mark of the chart that answers to the mouse. */
  protected offer(mark: SVGElement, row: number, column: number): void {
    mark.setAttribute("data-row", String(row));
    mark.setAttribute("data-column", String(column));
    mark.addEventListener("mouseover", () => this.tell("onmouseover", { row, column }));
    mark.addEventListener("mouseout", () => this.tell("onmouseout", { row, column }));
    mark.addEventListener("click", () => {
      this.setSelection([{ row, column }]);
      this.tell("select");
    });
  }
}
