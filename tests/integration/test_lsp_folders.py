"""Workspace folders: none, several, one within another, linked, on other systems."""

import os
import re
from pathlib import Path

import pytest
from lsprotocol import types

from lsp_editor import capabilities, editing, run
from lsp_profiles import SOURCE, record
from trace_builder import TraceBuilder

QUICK = {"watchSeconds": 0.2}


def project(folder: Path, **own: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(SOURCE, encoding="utf-8")
    record(folder, **own)  # type: ignore[arg-type]
    return folder


def test_each_workspace_folder_shows_its_own_traces(tmp_path: Path) -> None:
    async def scenario() -> None:
        root, other = project(tmp_path / "project"), project(tmp_path / "other", scale=3)
        async with editing(root, other, cache=tmp_path / "cache") as editor:
            uris = [editor.open(folder / "train.py") for folder in (root, other)]
            await editor.until(
                lambda: len({one["root"] for one in editor.statuses if one["state"] == "ready"}) == 2, "both"
            )
            assert [(await editor.hints(uri))[6] for uri in uris] == ["38 µs · 19 %", "114 µs · 19 %"]
            hot = await editor.command("hotLines", root=other.as_uri(), limit=1)
            assert hot["lines"][0]["uri"] == uris[1]
            removed = types.WorkspaceFoldersChangeEvent(
                added=[], removed=[types.WorkspaceFolder(other.as_uri(), "other")]
            )
            editor.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(removed))
            # Its trace is no longer looked at; the same text ran in the folder that stays.
            assert (await editor.hints(uris[1]))[6] == "38 µs · 19 %"

    run(scenario())


def test_a_copy_in_another_folder_shows_the_numbers_only_while_its_text_is_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = project(tmp_path / "project")
        copy = tmp_path / "copy" / "train.py"
        copy.parent.mkdir()
        copy.write_text(SOURCE, encoding="utf-8")
        original = (root / "train.py").as_uri()

        async with editing(root, copy.parent, cache=tmp_path / "cache") as editor:
            await editor.until_ready()
            uri = editor.open(copy)
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"
            assert (await editor.command("hotLines", limit=1))["lines"][0]["uri"] == original
            assert f"({original}#L11)" in await editor.hover(uri, 6, 10)
            editor.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
            assert await editor.hints(editor.open(uri, SOURCE + "# another file\n")) == {}
            assert (await editor.command("hotLines", limit=1))["lines"][0]["uri"] == original

    run(scenario())


def test_each_workspace_folder_has_settings_of_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        root, other = project(tmp_path / "project"), project(tmp_path / "other")
        (other / "deepscope_logs").rename(other / "results")
        async with editing(root, other, cache=tmp_path / "cache", settings=QUICK) as editor:
            await editor.until(
                lambda: (
                    {(one["root"], one["state"]) for one in editor.statuses}
                    >= {(root.as_uri(), "ready"), (other.as_uri(), "none")}
                ),
                "only the first folder has traces in the usual places",
            )
            editor.folder_settings = {other.as_uri(): {**QUICK, "traces": ["results"], "show": {"step": "many"}}}
            await editor.set(QUICK)
            await editor.until(
                lambda: (editor.statuses[-1]["root"], editor.statuses[-1]["state"]) == (other.as_uri(), "ready"),
                "the other one has a place of its own",
            )
            assert "results" in editor.statuses[-1]["trace"]["path"]
            assert [one for one in editor.messages if "deepscope.show: {'step': 'many'} cannot be used" in one]
            third = project(tmp_path / "third")
            (third / "deepscope_logs").rename(third / "results")
            editor.folder_settings[third.as_uri()] = {**QUICK, "traces": ["results"]}
            added = types.WorkspaceFoldersChangeEvent([types.WorkspaceFolder(third.as_uri(), "third")], [])
            editor.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(added))
            await editor.until(
                lambda: any((one["root"], one["state"]) == (third.as_uri(), "ready") for one in editor.statuses),
                "a folder that is added is asked about",
            )

    run(scenario())


def test_links_name_the_file_that_is_edited_though_a_builds_copy_of_it_was_opened_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "project"
        project(root, file="/cluster/job/train.py", project_root="/cluster/job")
        copy = root / "build" / "lib" / "train.py"
        copy.parent.mkdir(parents=True)
        copy.write_text(SOURCE, encoding="utf-8")
        async with editing(root, cache=tmp_path / "cache") as editor:
            await editor.until_ready()
            uri = editor.open(copy)
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"
            hover = await editor.hover(uri, 6, 10)
            assert f"({(root / 'train.py').as_uri()}#L11)" in hover
            assert "build" not in hover

    run(scenario())


def test_a_folder_that_is_added_later_is_looked_through(tmp_path: Path) -> None:
    async def scenario() -> None:
        root, other = project(tmp_path / "project"), project(tmp_path / "other", scale=3)
        async with editing(root, cache=tmp_path / "cache") as editor:
            await editor.until_ready()
            added = types.WorkspaceFoldersChangeEvent(
                added=[types.WorkspaceFolder(other.as_uri(), "other")], removed=[]
            )
            editor.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(added))
            await editor.until(
                lambda: any(one["root"] == other.as_uri() and one["state"] == "ready" for one in editor.statuses),
                "the trace of the new folder is shown",
            )
            assert (await editor.hints(editor.open(other / "train.py")))[6] == "114 µs · 19 %"

    run(scenario())


def test_a_file_in_a_folder_within_a_folder_shows_the_inner_ones_trace(tmp_path: Path) -> None:
    async def scenario() -> None:
        outer = project(tmp_path / "outer")
        inner = project(outer / "packages" / "inner", scale=2)
        async with editing(outer, inner, outer, cache=tmp_path / "cache") as editor:
            await editor.until(
                lambda: len({one["root"] for one in editor.statuses if one["state"] == "ready"}) == 2, "both"
            )
            uris = [editor.open(folder / "train.py") for folder in (outer, inner)]
            assert [(await editor.hints(uri))[6] for uri in uris] == ["38 µs · 19 %", "76 µs · 19 %"]

    run(scenario())


def test_a_folder_is_known_however_the_editor_quotes_its_uri(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = project(tmp_path / "pröject (1) 50%+~!")
        quoted = root.as_uri()
        async with editing(root, cache=tmp_path / "cache") as editor:
            await editor.until_ready()
            lower = re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)
            more = quoted.replace("(", "%28").replace("!", "%21").replace("~", "%7E").replace("+", "%2B")
            for uri in (quoted, quoted + "/", lower, more):
                assert (await editor.command("status", root=uri))["state"] == "ready"
            uri = editor.open(more + "/train.py", SOURCE)
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"

    run(scenario())


def test_without_a_workspace_folder_absolute_places_are_looked_in(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = project(tmp_path / "project")
        async with editing(cache=tmp_path / "cache", settings={"traces": [str(root / "deepscope_logs")]}) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"
            assert [one["path"] for one in await editor.command("listTraces")] == [editor.statuses[-1]["trace"]["path"]]
            await editor.command("setBaseline")
            assert (await editor.command("status"))["baseline"] is not None
        async with editing(cache=tmp_path / "cache") as editor:
            await editor.until(lambda: bool(editor.statuses), "it has looked")
            assert editor.statuses[-1]["state"] == "none"
            status = await editor.command("selectTrace", path=str(root / "deepscope_logs"))
            assert status["state"] == "ready"

    run(scenario())


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_linked_folder_is_the_folder(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = project(tmp_path / "real place")
        link = tmp_path / "link"
        link.symlink_to(root, target_is_directory=True)
        for opened, text in ((link, SOURCE), (link, "# edited\n" + SOURCE)):
            async with editing(opened, cache=tmp_path / "cache") as editor:
                uri = editor.open((opened / "train.py").as_uri(), text)
                await editor.until_ready()
                shift = text.count("\n") - SOURCE.count("\n")
                assert (await editor.hints(uri))[6 + shift] == "38 µs · 19 %"
                hot = await editor.command("hotLines", limit=1)
                assert hot["lines"][0]["uri"] == uri
                assert f"({uri}#L{11 + shift})" in await editor.hover(uri, 6 + shift, 10)

    run(scenario())


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_folder_that_was_recorded_through_a_link_is_the_folder(tmp_path: Path) -> None:
    async def scenario() -> None:
        real = tmp_path / "real"
        link = tmp_path / "link"
        real.mkdir()
        link.symlink_to(real, target_is_directory=True)
        (link / "train.py").write_text(SOURCE, encoding="utf-8")
        record(link)
        async with editing(real, cache=tmp_path / "cache") as editor:
            uri = editor.open((real / "train.py").as_uri(), "# edited\n" + SOURCE)
            await editor.until_ready()
            assert (await editor.hints(uri))[7] == "38 µs · 19 %"
            assert editor.questions == []

    run(scenario())


def test_paths_of_windows_and_of_another_machine_are_mapped(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "project"
        root.mkdir()
        (root / "train.py").write_text(SOURCE, encoding="utf-8")
        record(root, file="C:\\jobs\\42\\train.py", project_root="C:\\jobs\\42")
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "train.py", SOURCE + "# edited\n")
            await editor.until_ready()
            assert (await editor.hints(uri))[6] == "38 µs · 19 %"
            assert f"[train.py:11]({uri}#L11)" in await editor.hover(uri, 6, 10)
        mappings = {"pathMappings": {"C:\\jobs\\42": str(root / "src")}}
        (root / "src").mkdir()
        (root / "src" / "train.py").write_text("nothing = 'alike'\n", encoding="utf-8")
        async with editing(root, cache=tmp_path / "cache", settings=mappings) as editor:
            await editor.until_ready()
            hot = await editor.command("hotLines", limit=1)
            assert hot["lines"][0]["uri"] == (root / "src" / "train.py").as_uri()

    run(scenario())


def test_a_mapping_that_is_set_at_run_time_is_used_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "project"
        (root / "lib").mkdir(parents=True)
        (root / "lib" / "other.py").write_text("nothing = 'alike'\n", encoding="utf-8")
        record(root, file="/cluster/job 7/train.py", text=None)
        async with editing(root, cache=tmp_path / "cache") as editor:
            uri = editor.open(root / "lib" / "other.py")
            await editor.until_ready()
            assert await editor.hints(uri) == {}
            await editor.set({"pathMappings": {"/cluster/job 7/train.py": str(root / "lib" / "other.py")}})
            found = await editor.command("resolvePath", path="/cluster/job 7/train.py")
            assert found is not None
            assert found["uri"] == uri

    run(scenario())


def test_a_trace_that_is_written_anew_in_its_place_is_read_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = project(tmp_path / "project")
        async with editing(root, cache=tmp_path / "cache", settings=QUICK) as editor:
            uri = editor.open(root / "train.py")
            await editor.until_ready()
            for scale in (2, 3):
                record(root, scale=scale)
                label = f"{38 * scale} µs · 19 %"
                before = editor.refreshes
                await editor.until(lambda before=before: editor.refreshes > before, "it is shown")
                assert (await editor.hints(uri))[6] == label
            assert editor.messages == []

    run(scenario())


def test_a_trace_without_a_line_of_user_code_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "project"
        (root / "runs").mkdir(parents=True)
        (root / "train.py").write_text(SOURCE, encoding="utf-8")
        TraceBuilder().kernel("gemm", 0, 1000, 5000).write(root / "runs" / "w.1760000000000000000.pt.trace.json")
        async with editing(root, cache=tmp_path / "cache", client=capabilities()) as editor:
            uri = editor.open(root / "train.py")
            status = await editor.until_ready()
            assert "no line of user code" in status["message"]
            assert await editor.hints(uri) == {}
            assert (await editor.command("hotLines"))["lines"] == []
            (whole,) = (await editor.command("callPaths"))["roots"]
            assert (whole["function"], whole["totalNs"]) == ("(no user line)", 5000)

    run(scenario())
