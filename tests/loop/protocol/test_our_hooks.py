"""Each hook of ours reads and prints what the protocol says, run as a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.loop.piped import Json
from tests.loop.conftest import CHAT, Serve
from tests.loop.protocol.conftest import Ours, events, fields
from tests.loop.servers.script import say
from tests.loop.source_files import at_home, write


def test_walk_dirs_lists_bundled_packs_then_home_then_what_is_on_the_way(ours: Ours, project: Path) -> None:
    for directory in (at_home("plugins/b"), at_home("plugins/a"), project / ".harness/plugins/c"):
        directory.mkdir(parents=True)
    (project.parent / ".harness").mkdir()

    sources = ours.hook("sources/30-walk-dirs", "{}").json["sources"]

    bundled = [source for source in sources if "/loop/bundled/" in source]
    assert sources[: len(bundled)] == bundled
    assert [Path(source).name for source in bundled] == ["anthropic", "core", "openai"]
    mine, theirs = str(at_home()), str(project / ".harness")
    assert sources[len(bundled) :] == [
        f"{mine}/plugins/a", f"{mine}/plugins/b", mine, str(project.parent / ".harness"),
        f"{theirs}/plugins/c", theirs,
    ]  # fmt: skip


def test_auth_env_merges_the_credentials_and_passes_its_input_on(ours: Ours) -> None:
    pack, source = at_home("plugins/p"), at_home()
    lists = '"a":[{"type":"api_key","key":"1"}],"b":[{"type":"api_key","key":"2"}]'
    write(pack / ".auth.json", f'{{{lists},"of a plugin":{{"x":"4"}}}}')
    write(source / ".auth.json", '{"b":[{"type":"api_key","key":"3"}],"of a plugin":{"y":"5"}}')
    payload = {"sources": [str(pack), str(source)]}

    assert ours.hook("sources/35-auth-env", payload).json == payload

    cache = source / ".auth-cache.json"
    assert [f'"{key}"' in cache.read_text() for key in range(1, 6)] == [True, False, True, True, True]
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


def test_tools_prompts_and_skills_are_added_one_after_another(ours: Ours) -> None:
    write("prompts/10.md", "Be kind.")
    write("skills/cook/SKILL.md", "---\nname: cook\ndescription: Cooks\n---\nBoil.\n")

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


@pytest.mark.parametrize(
    ("name", "read", "added"),
    [
        ("start/10-init", {"a": 1}, {"next_state": "assemble"}),
        ("start/90-harness", {"a": 1}, {}),
        ("done/90-harness", {"output": "Done."}, {}),
        # It asks at the terminal only where no hook before it has a credential.
        ("auth-set/50-default", {"type": "api_key", "key": "k"}, {}),
    ],
)
def test_a_hook_passes_on_what_it_reads(ours: Ours, name: str, read: Json, added: Json) -> None:
    assert ours.hook(name, read).json == {**read, **added}
