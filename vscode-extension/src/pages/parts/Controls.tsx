/** What is chosen, turned on, or looked for. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Props<Value extends string> {
  readonly label: string;
  readonly options: readonly (readonly [Value, string])[];
  readonly value: Value;
  readonly choose: (value: Value) => void;
}

/** A choice of a few, all in sight. */
export function Segments<Value extends string>({ label, options, value, choose }: Props<Value>): JSX.Element {
  return (
    <span class="segments" role="group" aria-label={label}>
      {options.map(([one, words]) => (
        <button key={one} type="button" aria-pressed={one === value} onClick={() => choose(one)}>
          {words}
        </button>
      ))}
    </span>
  );
}

interface SelectProps<Value extends string> {
  /** Where no words stand beside it. */
  readonly label?: string;
  readonly title?: string | undefined;
  readonly options: readonly (readonly [Value, string])[];
  readonly value: Value | undefined;
  readonly choose: (value: Value) => void;
  readonly isDisabled?: boolean;
}

/** A choice of some, the chosen one in sight. */
export function Select<Value extends string>({ label, title = label, options, value, choose, isDisabled = false }: SelectProps<Value>): JSX.Element {
  return (
    <select aria-label={label} title={title} value={value} disabled={isDisabled} onChange={(event) => choose(event.currentTarget.value as Value)}>
      {options.map(([one, words]) => (
        <option key={one} value={one}>
          {words}
        </option>
      ))}
    </select>
  );
}

interface CheckProps {
  readonly words: ComponentChildren;
  readonly title?: string;
  readonly isOn: boolean;
  readonly turn: (isOn: boolean) => void;
}

/** Yes or no. */
export function Check({ words, title, isOn, turn }: CheckProps): JSX.Element {
  return (
    <label title={title}>
      <input type="checkbox" checked={isOn} onChange={(event) => turn(event.currentTarget.checked)} /> {words}
    </label>
  );
}

interface SearchProps {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  readonly look: (wanted: string) => void;
  /** How long the typing rests before it is looked for. */
  readonly pauseMs?: number;
  readonly isFocused?: boolean;
}

/** Looks for what is typed. */
export function Search({ label, placeholder, value, look, pauseMs = 0, isFocused = false }: SearchProps): JSX.Element {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => setText(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const typed = (next: string): void => {
    setText(next);
    clearTimeout(timer.current);
    if (pauseMs > 0) {
      timer.current = setTimeout(() => look(next), pauseMs);
    } else {
      look(next);
    }
  };
  return <input type="search" class="search" placeholder={placeholder} aria-label={label} value={text} autoFocus={isFocused} onInput={(event) => typed(event.currentTarget.value)} />;
}

interface MenuProps {
  readonly label: ComponentChildren;
  readonly title: string;
  readonly isActive?: boolean;
  /** What the panel has; `close` closes it. */
  readonly children: (close: () => void) => ComponentChildren;
}

/** A button that opens a small panel below it; Escape and a click elsewhere close it. */
export function Menu({ label, title, isActive = false, children }: MenuProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) {
      return undefined;
    }
    const elsewhere = (event: Event): void => {
      if (!(event.target instanceof Node && box.current?.contains(event.target) === true)) {
        setOpen(false);
      }
    };
    document.addEventListener("pointerdown", elsewhere);
    document.addEventListener("focusin", elsewhere);
    return () => {
      document.removeEventListener("pointerdown", elsewhere);
      document.removeEventListener("focusin", elsewhere);
    };
  }, [isOpen]);
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === "Escape" && isOpen) {
      event.stopPropagation();
      setOpen(false);
      box.current?.querySelector("button")?.focus();
    }
  };
  return (
    <div class="menu" ref={box} onKeyDown={pressed}>
      <button type="button" class={isActive ? "active" : ""} title={title} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {label}
      </button>
      {isOpen && (
        <div class="panel" role="group" aria-label={title}>
          {children(() => setOpen(false))}
        </div>
      )}
    </div>
  );
}

/** A set with a value that it had not, or without one that it had. */
export function toggled<T>(set: ReadonlySet<T>, value: T): ReadonlySet<T> {
  const next = new Set(set);
  if (!next.delete(value)) {
    next.add(value);
  }
  return next;
}
