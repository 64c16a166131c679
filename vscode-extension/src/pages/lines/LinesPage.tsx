/** The lines: their files, their text with numbers in the margin, and all that is known of one of them. */

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { choiceOf, go, useAddress, withWords, type Address, type PageProps } from "../app/address";
import { questions, type Column, type FileText, type Lines, type Rest } from "../contract";
import { Answer, useAnswer } from "../source/answers";
import { DataTable } from "../parts/DataTable";
import { Legend } from "../parts/Figures";
import { Place } from "../parts/Place";
import { Check, Menu, Search, Segments, Select } from "../parts/Controls";
import { useChosenColumns, type Chosen } from "../parts/table/columns";
import { count, words } from "../words";
import { FileTree } from "./FileTree";
import { LinePanel } from "./LinePanel";
import { SourceView } from "./SourceView";
import "./lines.css";

/** The address's word for the work of no user line. */
const NONE = "none";
const NARROW = "(max-width: 1180px)";
const VIEWS = [
  ["tree", "Files"],
  ["list", "All lines"],
] as const;

export function LinesPage({ address }: PageProps): JSX.Element {
  const found = useAnswer(questions.lines, choiceOf(address));
  const isList = address.words["view"] === "list";
  const choose = (view: "tree" | "list"): void => go(withWords(address, { view: view === "list" ? "list" : "" }));
  const views = <Segments label="How lines are shown" options={VIEWS} value={isList ? "list" : "tree"} choose={choose} />;
  return <Answer of={found}>{(lines) => (isList ? <ListView views={views} /> : <Files lines={lines} address={address} views={views} />)}</Answer>;
}

function ListView({ views }: { readonly views: JSX.Element }): JSX.Element {
  const address = useAddress();
  const found = useAnswer(questions.line_list, choiceOf(address));
  const isLibrary = address.words["of"] === "library";
  return (
    <Answer of={found}>
      {({ lines, library }) => {
        const tools = (
          <>
            {views}
            {library.rows.length > 0 && (
              <Check words="of libraries" isOn={isLibrary} turn={(isOn) => go(withWords(address, { of: isOn ? "library" : "" }))} />
            )}
          </>
        );
        const shown = isLibrary && library.rows.length > 0 ? library : lines;
        return <DataTable key={shown.id} of={shown} fills tools={tools} />;
      }}
    </Answer>
  );
}

interface FilesProps {
  readonly lines: Lines;
  readonly address: Address;
  readonly views: JSX.Element;
}

function Files({ lines, address, views }: FilesProps): JSX.Element {
  const [chosen, choose] = useChosenColumns("margin");
  const isNarrow = useIsNarrow();
  const { file: wantedFile, line, find = "", heat = "cost" } = address.words;
  const file = wantedFile ?? lines.files[0]?.file ?? "";
  const by = Math.max(
    0,
    lines.columns.findIndex(({ key }) => key === heat),
  );
  const open = (path: string): void => go(withWords(address, { file: path, line: "", fn: "" }));
  const tree = (
    <>
      <FileTree files={lines.files} columns={lines.columns} wholes={lines.wholes} by={by} wanted={find} chosen={line === NONE ? "" : file} choose={open} />
      {lines.leftOut > 0 && <p class="muted">{count(lines.leftOut)} more files are left out.</p>}
      <RestRows rest={lines.rest} by={by} kind={lines.columns[by]?.kind ?? "time"} address={address} />
    </>
  );
  return (
    <div class="lines">
      <div class="tools">
        {views}
        <Search label="Find files" placeholder="Find files" value={find} look={(wanted) => go(withWords(address, { find: wanted }), false)} />
        <label>
          Heat{" "}
          <Select options={lines.columns.map(({ key, title }) => [key, title] as const)} value={lines.columns[by]?.key} choose={(key) => go(withWords(address, { heat: key }), false)} />
        </label>
        <ColumnsMenu columns={lines.columns} chosen={chosen} choose={choose} />
        <Legend label="Bars" of={[["forward", "forward"], ["backward", "backward"], [lines.columns.some(({ key }) => key === "python") ? "Python" : "idle", "rest"]]} />
      </div>
      <div class={`panes ${lines.files.length === 1 ? "onefile" : ""}`}>
        {isNarrow ? (
          <details class="files">
            <summary>{lines.files.length === 1 ? "1 file" : `${count(lines.files.length)} files`}</summary>
            {tree}
          </details>
        ) : (
          <nav class="files" aria-label="Files">
            {tree}
          </nav>
        )}
        {file === "" && line !== NONE ? <p class="muted">No line of code is known to have cost time.</p> : <FilePane file={file} address={address} chosen={chosen} />}
      </div>
    </div>
  );
}

function RestRows({ rest, by, kind, address }: { readonly rest: readonly Rest[]; readonly by: number; readonly kind: Lines["columns"][number]["kind"]; readonly address: Address }): JSX.Element {
  return (
    <ul class="rest">
      {rest.map(({ name, about, values }) => (
        <li key={name} title={about}>
          {name === "(no user line)" ? <a href={withWords(address, { line: NONE, fn: "" })}>{name}</a> : <span>{name}</span>}
          <span class="number">{(values[by] ?? 0) > 0 ? words(values[by] ?? 0, kind) : ""}</span>
        </li>
      ))}
    </ul>
  );
}

interface PaneProps {
  readonly file: string;
  readonly address: Address;
  readonly chosen: Readonly<Record<string, boolean>>;
}

function FilePane({ file, address, chosen }: PaneProps): JSX.Element {
  const { line, heat = "cost" } = address.words;
  const text = useAnswer(questions.file, { ...choiceOf(address), file }, true);
  const shown = text.state === "ready" ? text.answer : undefined;
  const hottest = useMemo(() => (shown === undefined ? 0 : hottestOf(shown)), [shown]);
  const selected = line === NONE ? 0 : line !== undefined && /^\d{1,9}$/.test(line) ? Number(line) : hottest;
  const select = (next: number, isNew: boolean): void => go(withWords(address, { file, line: String(next), fn: "" }), isNew);
  return (
    <>
      <div class="middle">
        <Answer of={text}>
          {(answer) => (
            <>
              <h2 class="filename">
                <Place of={{ file: answer.file, line: Math.max(selected, 1) }} words={answer.name} />
                {answer.missing !== "" && <span class="muted">{answer.missing} These are its measured lines.</span>}
              </h2>
              <SourceView
                key={answer.file}
                of={answer}
                chosen={chosen}
                by={heat}
                setBy={(key) => go(withWords(address, { heat: key }), false)}
                selected={selected}
                select={select}
              />
            </>
          )}
        </Answer>
      </div>
      <aside class="linepanel" aria-label="The line">
        {line === NONE ? (
          <Details address={address} file="" line={0} hasText={false} />
        ) : shown === undefined ? null : shown.rows.some((row) => row.line === selected) ? (
          <Details address={address} file={shown.file} line={selected} hasText={shown.text.length > 0} />
        ) : (
          <p class="muted">{selected > 0 ? `Nothing was measured on line ${selected}.` : "No line of this file was measured."}</p>
        )}
      </aside>
    </>
  );
}

interface DetailsProps {
  readonly address: Address;
  readonly file: string;
  readonly line: number;
  readonly hasText: boolean;
}

function Details({ address, file, line, hasText }: DetailsProps): JSX.Element {
  const found = useAnswer(
    questions.line,
    { ...choiceOf(address), file, line, ...(address.words["fn"] === undefined ? {} : { function: address.words["fn"] }), ...(address.words["fold"] === "1" ? { fold: true } : {}) },
    true,
  );
  return <Answer of={found}>{(details) => <LinePanel of={details} address={address} hasText={hasText} />}</Answer>;
}

/** Whether the panes stand below each other. */
function useIsNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => window.matchMedia(NARROW).matches);
  useEffect(() => {
    const media = window.matchMedia(NARROW);
    const changed = (): void => setNarrow(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, []);
  return isNarrow;
}

/** The line that costs most, or has most below it. */
function hottestOf({ rows, columns }: FileText): number {
  const total = columns.findIndex(({ key }) => key === "total");
  const weight = ({ values }: FileText["rows"][number]): number => (values[0] ?? 0) + (values[total] ?? 0) / 1e6;
  return rows.reduce((best, row) => (best === undefined || weight(row) > weight(best) ? row : best), rows[0])?.line ?? 0;
}

interface ColumnsProps {
  readonly columns: readonly Column[];
  readonly chosen: Chosen;
  readonly choose: (chosen: Chosen) => void;
}

const SHOWN = [
  ["room", "if it fits"],
  ["always", "always"],
  ["never", "never"],
] as const;

/** Which columns stand in the margin: as many as there is room for, and those that the reader chose. */
function ColumnsMenu({ columns, chosen, choose }: ColumnsProps): JSX.Element {
  return (
    <Menu label="Columns" title="Which columns are shown" isActive={Object.keys(chosen).length > 0}>
      {() => (
        <>
          {columns.slice(1).map(({ key, title, help }) => (
            <label key={key} title={help}>
              <Select label={title} title={help} options={SHOWN} value={chosen[key] === undefined ? "room" : chosen[key] ? "always" : "never"} choose={(value) => choose(withChoice(chosen, key, value))} />{" "}
              {title}
            </label>
          ))}
          {Object.keys(chosen).length > 0 && (
            <button type="button" onClick={() => choose({})}>
              Choose by width
            </button>
          )}
        </>
      )}
    </Menu>
  );
}

function withChoice(chosen: Chosen, key: string, value: string): Chosen {
  const others = Object.entries(chosen).filter(([name]) => name !== key);
  return Object.fromEntries(value === "room" ? others : [...others, [key, value === "always"]]);
}
