/** Choices: a few in sight, or a panel below a button. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Props<Value extends string> {
  readonly label: string;
  readonly options: readonly (readonly [Value, string])[];
  readonly value: Value;
  readonly choose: (value: Value) => void;
}

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

interface MenuProps {
  readonly label: ComponentChildren;
  readonly title: string;
  readonly isActive?: boolean;
  /** What the panel has; `close` closes it. */
  readonly children: (close: () => void) => ComponentChildren;
}

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
