/** Components drawn into elements that know as much as Preact asks of them: no browser, no layout. */

import { render, type ComponentChild, type ContainerNode } from "preact";
import { act } from "preact/test-utils";

type Listener = (event: object) => void;

/** An element, or a text. */
export class Drawn {
  readonly nodeType: number;
  readonly childNodes: Drawn[] = [];
  readonly attributes: { name: string; value: string }[] = [];
  readonly style = { setProperty: (): undefined => undefined };
  /** By the name in small letters, with the name that Preact gave. */
  readonly listeners = new Map<string, readonly [string, Listener]>();
  parentNode: Drawn | null = null;
  data = "";
  focused = 0;

  constructor(readonly localName: string) {
    this.nodeType = localName === "" ? 3 : 1;
  }

  get firstChild(): Drawn | null {
    return this.childNodes[0] ?? null;
  }

  get nextSibling(): Drawn | null {
    const beside = this.parentNode?.childNodes ?? [];
    return beside[beside.indexOf(this) + 1] ?? null;
  }

  insertBefore(child: Drawn, next: Drawn | null): Drawn {
    child.remove();
    this.childNodes.splice(next === null ? this.childNodes.length : this.childNodes.indexOf(next), 0, child);
    child.parentNode = this;
    return child;
  }

  removeChild(child: Drawn): Drawn {
    child.remove();
    return child;
  }

  remove(): void {
    this.parentNode?.childNodes.splice(this.parentNode.childNodes.indexOf(this), 1);
    this.parentNode = null;
  }

  setAttribute(name: string, value: unknown): void {
    this.removeAttribute(name);
    this.attributes.push({ name, value: String(value) });
  }

  removeAttribute(name: string): void {
    this.attributes.splice(0, this.attributes.length, ...this.attributes.filter((one) => one.name !== name));
  }

  /** An attribute; undefined where there is none. */
  said(name: string): string | undefined {
    return this.attributes.find((one) => one.name.toLowerCase() === name.toLowerCase())?.value;
  }

  addEventListener(name: string, listener: Listener): void {
    this.listeners.set(name.toLowerCase(), [name, listener]);
  }

  removeEventListener(name: string): void {
    this.listeners.delete(name.toLowerCase());
  }

  focus(): void {
    this.focused += 1;
  }

  /** By `[name="value"]`, the one kind of selector that there is. */
  querySelector(selector: string): Drawn | null {
    const [, name = "", value = ""] = /^\[([\w-]+)="(.*)"\]$/.exec(selector) ?? [];
    return this.all().find((one) => one.said(name) === value) ?? null;
  }

  /** Everything in it, itself first. */
  all(): Drawn[] {
    return [this, ...this.childNodes.flatMap((child) => child.all())];
  }

  /** Its words. */
  get text(): string {
    return this.data + this.childNodes.map((child) => child.text).join("");
  }

  /** Tells it of an event, and what is around it until somebody listens. */
  async fire(name: string, event: object = {}): Promise<void> {
    const [type, listener] = this.listeners.get(name) ?? [];
    await (listener === undefined ? this.parentNode?.fire(name, event) : act(() => listener.call(this, { type, preventDefault: () => undefined, ...event })));
  }
}

/** Draws; drawn again into the same element it is the same component with other words. */
export async function drawn(component: ComponentChild, into: Drawn = new Drawn("main")): Promise<Drawn> {
  const texted = (data: string): Drawn => Object.assign(new Drawn(""), { data });
  Object.assign(globalThis, { document: { createElementNS: (_: string, name: string) => new Drawn(name), createTextNode: texted } });
  await act(() => render(component, into as unknown as ContainerNode));
  return into;
}
