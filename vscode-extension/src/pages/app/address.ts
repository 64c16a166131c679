/** The state of the pages in the address: `#/lines?run=…&file=…&line=12`. Back and forward are the browser's own; a panel has `Trail`. */

import { useEffect, useState } from "preact/hooks";
import type { Choice, Header } from "../contract";

export interface Address {
  readonly page: string;
  readonly words: Readonly<Record<string, string>>;
}

/** What each page is given. */
export interface PageProps {
  readonly address: Address;
  readonly header: Header;
}

/** What stays when another page is opened. */
const CHOICE = ["run", "rank", "stage", "step", "phase", "module", "baseline"];

export function parsed(hash: string): Address {
  const [page = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
  return { page: decoded(page), words: Object.fromEntries(new URLSearchParams(query)) };
}

/** A word of an address; one that nobody encoded stays as it is. */
export function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

export function written({ page, words }: Address): string {
  const query = new URLSearchParams(Object.entries(words).filter(([, value]) => value !== "")).toString();
  return `#/${encodeURIComponent(page)}${query === "" ? "" : `?${query}`}`;
}

/** The address of another page for the same choice. */
export function linkTo(from: Address, page: string, words: Readonly<Record<string, string>> = {}): string {
  const chosen = Object.fromEntries(CHOICE.flatMap((name) => (from.words[name] === undefined ? [] : [[name, from.words[name]]])));
  return written({ page, words: { ...chosen, ...words } });
}

/** The address of this page with some words changed; "" takes one away. */
export function withWords(from: Address, words: Readonly<Record<string, string>>): string {
  return written({ page: from.page, words: { ...from.words, ...words } });
}

/** Goes to an address. `isNew` false: the step is none that one would want to go back to. */
export function go(hash: string, isNew = true): void {
  if (isNew) {
    window.location.hash = hash;
  } else {
    window.history.replaceState(null, "", hash);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  }
}

/** The address, and each one that follows. */
export function useAddress(): Address {
  const [address, setAddress] = useState(() => parsed(window.location.hash));
  useEffect(() => {
    const changed = (): void => setAddress(parsed(window.location.hash));
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return address;
}

const CHOICES: readonly (keyof Choice)[] = ["run", "stage", "rank", "step", "phase", "module"];

/** Which profile the address chooses; of its words by `names` alone. */
export function choiceOf({ words }: Address, names = CHOICES): Choice {
  const chosen = names.flatMap((name): [string, string | number][] => {
    const word = words[name];
    if (word === undefined) {
      return [];
    }
    if (name !== "rank" && name !== "step") {
      return [[name, word]];
    }
    return /^-?\d{1,15}$/.test(word) ? [[name, Number(word)]] : [];
  });
  return Object.fromEntries(chosen);
}

/** Where a reader was: the way back and forward, which a panel has no browser for. */
export class Trail {
  private readonly places: string[];
  private position = 0;

  constructor(start: string) {
    this.places = [start];
  }

  get here(): string {
    return this.places[this.position] ?? "";
  }

  /** A new place: what lay ahead is forgotten. */
  visit(place: string): void {
    if (place !== this.here) {
      this.places.splice(this.position + 1, Infinity, place);
      this.position += 1;
    }
  }

  /** Another address of the same place. */
  amend(place: string): void {
    this.places[this.position] = place;
  }

  /** A step back (-1) or forward (1); the place there, or undefined at the end. */
  step(by: -1 | 1): string | undefined {
    const place = this.places[this.position + by];
    if (place !== undefined) {
      this.position += by;
    }
    return place;
  }
}
