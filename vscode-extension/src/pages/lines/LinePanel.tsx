/** All that is known of one line. */

import type { ComponentChildren, JSX } from "preact";
import { choiceOf, go, linkTo, withWords, type Address } from "../app/address";
import { questions, type CallPath, type LineDetails } from "../contract";
import { FindingCard } from "../findings/FindingCard";
import { Check, Select } from "../parts/Controls";
import { Figures } from "../parts/Figures";
import { Place } from "../parts/Place";
import { useCopy } from "../parts/browser";
import { useHas, useSource } from "../source/answers";
import { StackBar } from "../parts/StackBar";
import { count, duration, share, words } from "../words";
import { BelowTree } from "./BelowTree";

interface Props {
  readonly of: LineDetails;
  readonly address: Address;
  /** A line's text that is shown beside the panel need not stand in it. */
  readonly hasText: boolean;
}

export function LinePanel({ of, address, hasText }: Props): JSX.Element {
  const folded = address.words["fold"] === "1";
  const canFold = useHas()(questions.line, { ...choiceOf(address), file: of.file, line: of.line, fold: true });
  return (
    <>
      <header class="linehead">
        <h2>
          <Place of={of} words={lastPart(of.place)} />
        </h2>
        {of.functions.length > 1 ? (
          <Select label="In which function" options={of.functions.map((one) => [one, one] as const)} value={of.function} choose={(fn) => go(withWords(address, { fn }), false)} />
        ) : (
          of.function !== "" && <span class="muted">in {of.function}</span>
        )}
        {of.isLibrary && <span class="chip">library</span>}
      </header>
      {!hasText && of.source !== "" && <pre class="linetext">{of.source}</pre>}
      {of.notes.map((note) => (
        <p key={note} class="muted">
          {note}
        </p>
      ))}
      <Actions of={of} address={address} />
      <Why of={of} />
      <Figures of={of.figures} class="numbers" />
      {of.findings.length > 0 && (
        <Part title="What to change">
          <div class="stack">
            {of.findings.map((one) => (
              <FindingCard key={one.code} of={one} isShort />
            ))}
          </div>
        </Part>
      )}
      <Part
        title="What its work is made of"
        tools={
          canFold && (
            <Check
              title="Modules that differ in a number alone become one: layers.*"
              words="alike layers as one"
              isOn={folded}
              turn={(isOn) => go(withWords(address, { fold: isOn ? "1" : "" }), false)}
            />
          )
        }
      >
        {of.note !== "" ? <p class="muted">{of.note}</p> : <BelowTree nodes={of.below} leftOut={of.belowLeftOut} />}
      </Part>
      {of.callers.some(({ frames }) => frames.length > 0) && (
        <Part title={of.isLibrary ? "Called from" : "Who calls it"}>
          <Callers paths={of.callers} leftOut={of.callersLeftOut} />
        </Part>
      )}
      {of.fusedWith.length > 0 && (
        <Part title="Fused with">
          <ul class="plain">
            {of.fusedWith.map((one) => (
              <li key={one.place}>
                <Place of={one} />
                <span class="number">{duration(one.sharedNs)}</span>
              </li>
            ))}
          </ul>
        </Part>
      )}
      {of.held.length > 0 && (
        <Part title="Held at the peak of memory">
          <ul class="plain">
            {of.held.map(({ label, value, kind }) => (
              <li key={label}>
                <span>{label}</span>
                <span class="number">{words(value, kind)}</span>
              </li>
            ))}
          </ul>
        </Part>
      )}
    </>
  );
}

/** A place without its folders, which the title and the tree beside it have. */
function lastPart(place: string): string {
  return place.slice(place.lastIndexOf("/") + 1);
}

function Part({ title, tools, children }: { readonly title: string; readonly tools?: ComponentChildren; readonly children: ComponentChildren }): JSX.Element {
  return (
    <section>
      <div class="parthead">
        <h3>{title}</h3>
        {tools}
      </div>
      {children}
    </section>
  );
}

function Actions({ of, address }: { readonly of: LineDetails; readonly address: Address }): JSX.Element | null {
  const source = useSource();
  if (of.file === "") {
    return null;
  }
  const place = { file: of.file, line: String(of.line) };
  const editor = source.opensCode ? undefined : editorLink(of.file, of.line);
  return (
    <p class="actions">
      <a href={linkTo(address, "flame", place)}>Flame graph</a>
      {source.isServed && <a href={linkTo(address, "timeline", place)}>Timeline</a>}
      {source.opensCode && (
        <button type="button" onClick={() => source.open({ file: of.file, line: of.line })}>
          Open
        </button>
      )}
      {editor !== undefined && (
        <a href={editor} rel="noreferrer">
          VS Code
        </a>
      )}
      <CopyButton text={`${of.file}:${of.line}`} />
    </p>
  );
}

function CopyButton({ text }: { readonly text: string }): JSX.Element {
  const [outcome, copy] = useCopy();
  return (
    <button type="button" onClick={() => copy(text)} title={text}>
      {outcome === "" ? "Copy place" : outcome}
    </button>
  );
}

function Why({ of }: { readonly of: LineDetails }): JSX.Element | null {
  if (of.costNs <= 0) {
    return null;
  }
  return (
    <div class="why">
      <p>
        <strong>{share(of.costShare)}</strong> of what the run costs
        {of.verdict !== "" && <span class="chip verdict">{of.verdict}</span>}
      </p>
      {of.why !== "" && <p class="muted">{of.why}</p>}
      {of.causes.length > 0 && (
        <StackBar
          parts={of.causes.map(({ timeNs, ...cause }) => ({ ...cause, value: timeNs }))}
          words={duration}
          numbers={(time, part) => (
            <span class="muted">
              {time}, {part}
            </span>
          )}
          isSlim
        />
      )}
    </div>
  );
}

function Callers({ paths, leftOut }: { readonly paths: readonly CallPath[]; readonly leftOut: number }): JSX.Element {
  return (
    <ol class="callers">
      {paths.map(({ frames, totalNs, cpuNs }, at) => (
        <li key={at}>
          <span class="frames">
            {frames.length === 0 && <span class="muted">called by no line</span>}
            {frames.map((frame, place) => (
              <span key={place}>
                <Place of={frame} words={lastPart(frame.place)} />
                {place < frames.length - 1 && <span class="muted"> › </span>}
              </span>
            ))}
          </span>
          <span class="number" title="With what the line calls">
            {totalNs > 0 ? duration(totalNs) : `${duration(cpuNs)} CPU`}
          </span>
        </li>
      ))}
      {leftOut > 0 && <li class="muted">{count(leftOut)} more</li>}
    </ol>
  );
}

/** `vscode://file/…` for an absolute path of this machine's kind; undefined for what names no such file. */
export function editorLink(file: string, line: number): string | undefined {
  const path = /^[A-Za-z]:[\\/]/.test(file) ? `/${file.replaceAll("\\", "/")}` : file;
  // A network's path (`//host/…`, `\\host\…`) could be anybody's.
  if (!path.startsWith("/") || path.startsWith("//") || !Number.isSafeInteger(line) || line < 1) {
    return undefined;
  }
  const [, drive = "", rest = ""] = /^(\/[A-Za-z]:)?(.*)$/s.exec(path) ?? [];
  try {
    return `vscode://file${drive}${rest.split("/").map(encodeURIComponent).join("/")}:${line}`;
  } catch {
    return undefined; // a lone half of a letter
  }
}
