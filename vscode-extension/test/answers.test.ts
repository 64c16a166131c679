import { h, type JSX } from "preact";
import { act } from "preact/test-utils";
import { expect, it, vi } from "vitest";
import { questions } from "../src/pages/contract";
import { SourceContext, useAsked } from "../src/pages/source/answers";
import type { Source } from "../src/pages/source/source";
import { drawn, type Drawn } from "./drawn";

/** A source that answers when it is told to, and a page that shows what is asked of it. */
function page(): { readonly ask: object; readonly show: (code?: string) => Promise<string>; readonly answer: (code: string) => Promise<string> } {
  const waiting = new Map<string, (answer: object) => void>();
  const ask = vi.fn((_: object, { code }: { readonly code: string }) => new Promise<object>((resolve) => waiting.set(code, resolve)));
  const source = { ask, isServed: true } as unknown as Source;
  const Shown = ({ code }: { readonly code: string | undefined }): JSX.Element => {
    const found = useAsked(questions.finding_page, code === undefined ? undefined : { code });
    return h("p", {}, found?.state === "ready" ? found.answer.text : (found?.state ?? "nothing"));
  };
  let main: Drawn | undefined;
  const show = async (code?: string): Promise<string> => {
    main = await drawn(h(SourceContext.Provider, { value: source, children: h(Shown, { code }) }), main);
    return main.text;
  };
  const answer = async (code: string): Promise<string> => {
    await act(async () => {
      waiting.get(code)?.({ text: `about ${code}` });
      await new Promise((resolve) => setTimeout(resolve));
    });
    return main?.text ?? "";
  };
  return { ask, show, answer };
}

it("an answer is asked once, where it is wanted alone, and stays until the next one is there", async () => {
  const { ask, show, answer } = page();
  expect([await show(), await show("DS001"), await answer("DS001")]).toEqual(["nothing", "nothing", "about DS001"]);
  expect([await show("DS002"), await answer("DS002")]).toEqual(["about DS001", "about DS002"]);
  expect(await show("DS001")).toBe("about DS001");
  expect(ask).toHaveBeenCalledTimes(2);
});

it("an answer that is no longer wanted is not shown, however late it comes", async () => {
  const { show, answer } = page();
  await show("DS001");
  expect([await show("DS002"), await answer("DS002"), await answer("DS001")]).toEqual(["nothing", "about DS002", "about DS002"]);
  expect([await show(), await show("DS003")]).toEqual(["nothing", "nothing"]);
});
