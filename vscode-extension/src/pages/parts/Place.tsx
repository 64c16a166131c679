/** A line of code that can be gone to: in the editor where there is one, else in the pages. */

import type { ComponentChildren, JSX } from "preact";
import { go, linkTo, useAddress } from "../app/address";
import type { CodePlace } from "../source/source";
import { useSource } from "../source/useAnswer";
import { visible } from "../words";

interface Props {
  readonly file: string;
  readonly line: number;
  readonly class?: string;
  readonly children: ComponentChildren;
}

/** Goes to a line without a link that is clicked. */
export function useOpen(): (place: CodePlace) => void {
  const source = useSource();
  const address = useAddress();
  return ({ file, line }) => {
    if (source.opensCode) {
      source.open({ file, line });
    } else {
      go(linkTo(address, "lines", { file, line: String(line) }));
    }
  };
}

export function Place({ file, line, class: style = "", children }: Props): JSX.Element {
  const source = useSource();
  const address = useAddress();
  // Of a place for which there is no room the path is cut, never the line.
  const [, path, at] = typeof children === "string" ? (/^(.*)(:\d+)$/s.exec(children) ?? []) : [];
  const words =
    path === undefined ? (
      children
    ) : (
      <>
        <span class="path">{path}</span>
        <span>{at}</span>
      </>
    );
  if (file === "") {
    return <span class={`place ${style}`}>{words}</span>;
  }
  const opened = (event: Event): void => {
    if (source.opensCode) {
      event.preventDefault();
      source.open({ file, line });
    }
  };
  return (
    <a class={`place ${style}`} href={linkTo(address, "lines", { file, line: String(line) })} title={visible(`${file}:${line}`)} onClick={opened}>
      {words}
    </a>
  );
}
