/** A button that opens a small panel below it; Escape and a click elsewhere close it. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Props {
  readonly label: ComponentChildren;
  readonly title: string;
  readonly isActive?: boolean;
  /** What the panel has; `close` closes it. */
  readonly children: (close: () => void) => ComponentChildren;
}

export function Menu({ label, title, isActive = false, children }: Props): JSX.Element {
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
