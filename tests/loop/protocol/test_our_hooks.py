"""Each hook of ours reads and prints what the protocol says, run as a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.loop.piped import dumps
from tests.loop.conftest import CHAT, Serve
from tests.loop.protocol.conftest import Ours, events, fields
from tests.loop.servers.script import say
from tests.loop.source_files import write


def test_walk_dirs_lists_bundled_packs_then_home_then_what_is_on_the_way(
    ours: Ours, home: Path, project: Path
) -> None:
    for directory in (
        home / ".harness/plugins/b",
        home / ".harness/plugins/a",
        project / ".harness/plugins/c",
    ):
        directory.mkdir(parents=True)
    (project.parent / ".harness").mkdir()

    sources = ours.hook("sources/30-walk-dirs", "{}").json["sources"]

    bundled = [source for source in sources if "/loop/bundled/" in source]
    assert sources[: len(bundled)] == bundled
    assert [Path(source).name for source in bundled] == ["anthropic", "core", "openai"]
    mine, theirs = str(home / ".harness"), str(project / ".harness")
    assert sources[len(bundled) :] == [
        f"{mine}/plugins/a", f"{mine}/plugins/b", mine, str(project.parent / ".harness"),
        f"{theirs}/plugins/c", theirs,
    ]  # fmt: skip


def test_auth_env_merges_the_credentials_and_passes_its_input_on(ours: Ours, home: Path) -> None:
    pack, source = home / ".harness/plugins/p", home / ".harness"
    write(pack / ".auth.json", '{"a":[{"type":"api_key","key":"1"}],"b":[{"type":"api_key","key":"2"}]}')
    write(source / ".auth.json", '{"b":[{"type":"api_key","key":"3"}]}')
    payload = {"sources": [str(pack), str(source)]}

    assert ours.hook("sources/35-auth-env", payload).json == payload

    cache = source / ".auth-cache.json"
    assert '"1"' in cache.read_text()
    assert '"3"' in cache.read_text()
    assert '"2"' not in cache.read_text()
    assert cache.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("provider", "left"),
    [("", ["one", "two", "plain"]), ("one", ["one", "plain"]), ("variant", ["two", "plain"])],
)
def test_scope_leaves_out_the_packs_of_other_providers(
    ours: Ours, tmp_path: Path, provider: str, left: list[str]
) -> None:
    packs = tmp_path / "plugins"
    write(packs / "one/providers/one", "#!/bin/sh\n", 0o755)
    write(packs / "two/providers/two", "#!/bin/sh\n", 0o755)
    write(packs / "plain/providers/variant.conf", "protocol=two\n")
    ours.env["HARNESS_PROVIDER"] = provider
    payload = {"sources": [str(packs / name) for name in ("one", "two", "plain")]}

    scoped = ours.hook("sources/40-scope-providers", payload).json

    assert [Path(source).name for source in scoped["sources"]] == left


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"provider": "", "model": ""}, {"provider": "groq", "model": "small"}),
        ({"provider": "", "model": "mine"}, {"provider": "groq", "model": "mine"}),
        ({"provider": "zai", "model": ""}, {"provider": "zai", "model": ""}),
    ],
)
def test_settings_fill_in_what_was_not_asked_for(
    ours: Ours, home: Path, asked: dict[str, str], expected: dict[str, str]
) -> None:
    write(home / ".harness/plugins/p/settings.conf", "provider=far\nmodel=away\n")
    write(home / ".harness/settings.conf", "provider=groq\nmodel=small\n")

    assert ours.hook("resolve/10-settings", asked).json == expected


@pytest.mark.parametrize(
    ("keys", "provider"),
    [
        (["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], "anthropic"),
        (["OPENAI_API_KEY", "ZAI_AUTH_TOKEN"], "zai"),
        (["OPENAI_API_KEY", "GROQ_API_KEY"], "groq"),
        (["OPENAI_API_URL"], "openai"),
        (["OPENROUTER_API_KEY"], "openrouter"),
    ],
)
def test_detect_takes_the_first_that_is_ready_in_the_order_of_the_sources(
    ours: Ours, keys: list[str], provider: str
) -> None:
    ours.env |= {"HARNESS_PROVIDER": "", **dict.fromkeys(keys, "x")}
    asked = {"provider": "", "model": ""}

    assert ours.hook("resolve/20-detect", asked).json == {"provider": provider, "model": ""}


def test_detect_says_what_to_do_where_none_is_ready(ours: Ours) -> None:
    ran = ours.hook("resolve/20-detect", {"provider": "", "model": ""})

    assert ran.code == 1
    assert ran.out.startswith('{"error":"no ready provider found')


def test_start_passes_its_input_on_to_assemble(ours: Ours) -> None:
    assert ours.hook("start/10-init", {"a": 1}).json == {"a": 1, "next_state": "assemble"}
    assert ours.hook("start/90-harness", {"a": 1}).json == {"a": 1}


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_messages_are_added_in_the_words_of_the_provider(ours: Ours, session: Path, provider: str) -> None:
    ours.env |= {"HARNESS_PROVIDER": provider, "ANTHROPIC_API_KEY": "k", "OPENAI_API_URL": "http://127.0.0.1"}

    payload = ours.hook("assemble/10-messages", {"kept": True}).json

    assert payload["kept"] is True
    first, call, result = payload["messages"]
    assert first == {"role": "user", "content": "List files"}
    if provider == "anthropic":
        assert call["content"] == [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}},
        ]
        block = {"type": "tool_result", "tool_use_id": "c1", "content": "README.md"}
        assert result == {"role": "user", "content": [block]}
    else:
        assert call["content"] == "I look."
        assert call["tool_calls"][0]["function"] == {"name": "bash", "arguments": '{"command":"ls"}'}
        assert result == {"role": "tool", "tool_call_id": "c1", "content": "README.md"}
    assert session.is_dir()


def test_tools_prompts_and_skills_are_added_one_after_another(ours: Ours, home: Path) -> None:
    write(home / ".harness/prompts/10.md", "Be kind.")
    write(home / ".harness/skills/cook/SKILL.md", "---\nname: cook\ndescription: Cooks\n---\nBoil.\n")

    tools = ours.hook("assemble/20-tools", {"messages": []}).json
    prompted = ours.hook("assemble/30-prompts", {**tools, "system": "replaced"}).json
    whole = ours.hook("assemble/35-skills", prompted).json

    assert [set(tool) - {"annotations"} for tool in tools["tools"]] == [
        {"name", "description", "input_schema"}
    ] * 9
    assert prompted["next_state"] == "send"
    assert "Be kind." in prompted["system"]
    assert "replaced" not in prompted["system"]
    assert whole["system"].startswith(prompted["system"])
    assert '<skill name="cook" path="' in whole["system"].split("<available-skills>")[1]
    assert (whole["messages"], whole["next_state"]) == ([], "send")


def test_send_prints_the_native_answer_and_receive_saves_it(ours: Ours, serve: Serve, session: Path) -> None:
    server = serve(CHAT, say("Two files."))
    ours.env |= CHAT.environment(server)

    native = ours.hook("send/10-send", {"messages": [{"role": "user", "content": "hi"}], "system": "s"})
    said = ours.hook("receive/10-save", native.out)

    assert native.json["next_state"] == "receive"
    assert native.json["choices"][0]["message"]["content"] == "Two files."
    assert said.json == {"next_state": "done", "output": "Two files."}
    answer = session / "messages/0004-assistant.md"
    assert answer.read_text().endswith("---\nTwo files.\n\n")
    assert fields(answer)["stop"] == "end"
    assert events(session)[-1] == '{"type":"stop","reason":"end","seq":"0004"}'


def test_send_that_fails_prints_the_error(ours: Ours, session: Path) -> None:
    ours.env |= {"HARNESS_PROVIDER": "anthropic"}

    ran = ours.hook("send/10-send", {"messages": []})

    assert ran.code == 1
    assert ran.out.startswith('{"error":"ANTHROPIC_API_KEY is not set')
    assert session.is_dir()


def test_exec_runs_the_first_call_and_done_saves_it(ours: Ours, session: Path) -> None:
    calls = [{"id": "c1", "name": "bash", "input": {"command": f"echo {n}"}} for n in (1, 2)]

    ran = ours.hook("tool_exec/10-exec", {"tool_calls": calls})
    saved = ours.hook("tool_done/10-save", ran.out)

    assert list(ran.json) == ["call_id", "name", "input", "result", "error", "tool_calls", "next_state"]
    assert ran.json | {"tool_calls": 0} == {
        "call_id": "c1", "name": "bash", "input": {"command": "echo 1"}, "result": "1", "error": False,
        "tool_calls": 0, "next_state": "tool_done",
    }  # fmt: skip
    assert ran.json["tool_calls"] == calls[1:]
    assert saved.json == {"next_state": "tool_exec", "tool_calls": calls[1:]}
    result = session / "messages/0004-tool_result.md"
    assert list(fields(result)) == ["role", "seq", "timestamp", "call_id", "tool", "error"]
    assert '{"type":"tool_done","id":"c1","name":"bash","seq":"0004","error":"false"}' in events(session)
    assert ours.hook("tool_done/10-save", {**ran.json, "tool_calls": []}).json == {"next_state": "assemble"}


@pytest.mark.parametrize(
    ("printed", "shown"),
    [('{"error":"not today"}', "error: not today"), ("", "error: hook pipeline failed (check /dev/null)")],
)
def test_display_turns_the_error_into_the_output(ours: Ours, session: Path, printed: str, shown: str) -> None:
    assert ours.hook("error/10-display", printed).out == dumps({"output": shown})
    assert events(session)[-1] == dumps({"type": "error", "message": shown.removeprefix("error: ")})


def test_done_passes_the_answer_on(ours: Ours, session: Path) -> None:
    assert ours.hook("done/90-harness", {"output": "Done."}).json == {"output": "Done."}
    assert session.is_dir()


def test_auth_set_leaves_a_credential_of_another_hook_alone(ours: Ours) -> None:
    credential = {"type": "api_key", "key": "k"}

    assert ours.hook("auth-set/50-default", credential).json == credential
