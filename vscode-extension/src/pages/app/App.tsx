/** The frame around every page: what is shown, where to go, what is chosen. A page that fails says so, and the others go on. */

import { Component, render, type ComponentChildren, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { questions, type Header, type Run } from "../contract";
import { Answer, SourceContext, useAnswer, useSource } from "../source/answers";
import { choiceOf, go, linkTo, useAddress, withWords, written, type Address } from "./address";
import { linkToRun, titleOf, useRuns } from "./runs";
import { Pickers } from "./Pickers";
import { PAGES, type Page } from "./registry";
import { ThemeButton } from "./ThemeButton";
import type { Source } from "../source/source";
import "../style/tokens.css";
import "../style/layout.css";
import "../style/parts.css";
import "../overview/overview.css";

function App(): JSX.Element {
  const address = useAddress();
  const header = useAnswer(questions.header, choiceOf(address), true);
  const answer = header.state === "ready" ? header.answer : undefined;
  const found = useRuns();
  useEffect(() => {
    document.title = answer === undefined ? "DeepScope" : `${answer.title} · DeepScope`;
  }, [answer]);
  return (
    <div class="app">
      <a class="skip" href="#main" onClick={skipped}>
        Skip to the page
      </a>
      <TopBar header={answer} address={address} runs={found.runs} />
      {found.problem !== "" && (
        <p class="newer" role="alert">
          {found.problem} What is shown was read before.
        </p>
      )}
      {found.newer !== undefined && answer !== undefined && <NewerRun run={found.newer} shown={answer} address={address} />}
      {header.state === "failed" && <WayBack address={address} />}
      <Answer of={header}>{(shown) => <Body header={shown} address={address} />}</Answer>
    </div>
  );
}

/** Where what the address chooses cannot be shown: to what can be. */
function WayBack({ address }: { readonly address: Address }): JSX.Element | null {
  return Object.keys(address.words).length === 0 ? null : (
    <p class="wayback">
      <a href={written({ page: "overview", words: {} })}>Go to the first page</a>
    </p>
  );
}

/** Leads to a run that was recorded while the page is open. Until then the page stays at the run that it shows. */
function NewerRun({ run, shown, address }: { readonly run: Run; readonly shown: Header; readonly address: Address }): JSX.Element | null {
  const [forgotten, forget] = useState("");
  const chosen = address.words["run"];
  useEffect(() => {
    if (chosen === undefined && shown.run !== run.id) {
      go(withWords(address, { run: shown.run }), false);
    }
  }, [run.id, chosen]);
  if (forgotten === run.id || shown.run.split("~")[0] === run.id) {
    return null;
  }
  return (
    <div class="newer" role="status">
      <span>A newer run was recorded: {titleOf(run)}</span>
      <a href={linkToRun(address, run)}>Show it</a>
      <button type="button" onClick={() => forget(run.id)}>
        Stay here
      </button>
    </div>
  );
}

function skipped(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

interface TopBarProps {
  readonly header: Header | undefined;
  readonly address: Address;
  readonly runs: readonly Run[];
}

function TopBar({ header, address, runs }: TopBarProps): JSX.Element {
  return (
    <header class="topbar">
      <a class="brand" href={linkTo(address, "overview")}>
        <Mark />
        <span>DeepScope</span>
      </a>
      <Pickers header={header} address={address} runs={runs} />
      <span class="grow" />
      {header !== undefined && <span class="device muted">{header.device}</span>}
      <ThemeButton />
    </header>
  );
}

/** The mark: a beam through three lines, the hot one lit. */
function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <rect x="1" y="3" width="12" height="3" rx="1.5" />
      <rect class="lit" x="1" y="8.5" width="18" height="3" rx="1.5" />
      <rect x="1" y="14" width="8" height="3" rx="1.5" />
    </svg>
  );
}

function Body({ header, address }: { readonly header: Header; readonly address: Address }): JSX.Element {
  const { isServed } = useSource();
  const there = PAGES.filter((page) => page.isThere?.(header) ?? true);
  const pages = there.filter((page) => isServed || page.needsServer !== true);
  const chosen = pages.find((page) => page.id === address.page) ?? pages[0];
  return (
    <div class="body">
      <Navigation pages={pages} missing={there.filter((page) => !pages.includes(page))} chosen={chosen} address={address} />
      {chosen !== undefined && <Shown page={chosen} header={header} address={address} />}
    </div>
  );
}

interface NavigationProps {
  readonly pages: readonly Page[];
  /** Those that need a server, where there is none. */
  readonly missing: readonly Page[];
  readonly chosen: Page | undefined;
  readonly address: Address;
}

function Navigation({ pages, missing, chosen, address }: NavigationProps): JSX.Element {
  const list = useRef<HTMLElement>(null);
  useEffect(() => {
    const { current } = list;
    const tab = current?.querySelector<HTMLElement>("[aria-current]");
    if (current !== null && tab != null) {
      current.scrollLeft = tab.offsetLeft - (current.clientWidth - tab.offsetWidth) / 2; // narrow pages have them in a row
    }
  }, [chosen?.id, pages.length]);
  return (
    <nav class="pages" aria-label="Pages" ref={list}>
      {pages.map((page) => (
        <a key={page.id} href={linkTo(address, page.id)} {...(page === chosen ? { "aria-current": "page" as const } : {})}>
          {page.title}
        </a>
      ))}
      {missing.length > 0 && <p class="missing">{missing.map(({ title }) => title).join(", ")}: in deepscope view</p>}
    </nav>
  );
}

function Shown({ page, header, address }: { readonly page: Page; readonly header: Header; readonly address: Address }): JSX.Element {
  const main = useRef<HTMLElement>(null);
  useEffect(() => main.current?.scrollTo(0, 0), [page.id]);
  const { component: Component } = page;
  return (
    <main id="main" class={`page page-${page.id}`} tabIndex={-1} ref={main}>
      <h1>{page.title}</h1>
      {page.id === "overview" &&
        header.notes.map((note) => (
          <p class="note" key={note}>
            {note}
          </p>
        ))}
      <Boundary key={page.id}>
        <Component address={address} header={header} />
      </Boundary>
    </main>
  );
}

interface BoundaryProps {
  readonly children: ComponentChildren;
}

interface BoundaryState {
  readonly message: string | undefined;
}

class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { message: undefined };

  override componentDidCatch(error: unknown): void {
    this.setState({ message: error instanceof Error ? error.message : String(error) });
  }

  override render(): ComponentChildren {
    const { message } = this.state;
    if (message === undefined) {
      return this.props.children;
    }
    return (
      <div class="failure" role="alert">
        <h3>This page failed</h3>
        <p>{message}</p>
      </div>
    );
  }
}

/** Draws the pages with the answers of a source; called again, they follow another one. */
export function draw(source: Source, above: ComponentChildren = null): void {
  const root = document.getElementById("root");
  if (root !== null) {
    render(
      <SourceContext.Provider value={source}>
        {above}
        <App />
      </SourceContext.Provider>,
      root,
    );
  }
}
