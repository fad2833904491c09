"""What callers do with the plugins from outside: 41 cases, one for each of the original's own public tests.

A plugin of a pack, `plugins/PACK/hooks.d/STAGE/NAME`, is `HARNESS_PROVIDER=PACK hs hook STAGE/NAME` here. A
caller names its session and its sources in the environment, and has no key and no login.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_lib.loop.piped import dumps
from tests.hs.person import person
from tests.loop.conftest import Hs
from tests.loop.protocol.conftest import TOOL, Caller, Ran, events, fields
from tests.loop.source_files import write

PROTOCOL = Path(__file__).parents[3] / "docs/hs-protocol.md"
Case = Callable[[Caller], None]


def cases() -> list[Case]:
    """Return the cases that stand above the call."""
    ours = (each for each in globals().values() if getattr(each, "__module__", "") == __name__)
    return [each for each in ours if callable(each) and each is not cases and each.__name__[0] != "_"]


def acp_adapter(caller: Caller) -> None:
    opens = {"id": 2, "method": "session/new", "params": {"cwd": str(caller.place)}}
    first, second = caller.acp({"id": 1, "method": "initialize", "params": {}}, opens)
    assert (first["id"], first["result"]["protocolVersion"]) == (1, 1)
    assert first["result"]["agentInfo"]["name"] == "harness"
    # Whether a session begins depends on a provider, which `acp` looks for as every command does.
    assert second["id"] == 2


def acp_null_id(caller: Caller) -> None:
    initialize = {"method": "initialize", "params": {}}
    answers = caller.acp(initialize, {"id": 1, **initialize})
    assert [answer["id"] for answer in answers] == [1]
    assert answers[0]["result"]["agentInfo"]["name"] == "harness"


def acp_notification_exit(caller: Caller) -> None:
    assert caller.acp({"method": "notifications/initialized", "params": {}}) == []


def acp_error_reporting(caller: Caller) -> None:
    prompt = {"sessionId": "unknown", "prompt": [{"type": "text", "text": "hello"}]}
    (answer,) = caller.acp({"id": 1, "method": "session/prompt", "params": prompt})
    assert answer["error"]["message"]


def anthropic_assemble_messages(caller: Caller) -> None:
    caller.says("0001-user", "", "What is 2+2?")
    caller.says("0002-assistant", "", "The answer is 4.")
    caller.says("0003-user", "", "Thanks!")
    reply = caller.hook("assemble/10-messages", {"kept": True}, provider="anthropic")
    messages = reply.pop("messages")
    assert reply == {"kept": True}
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert (messages[0]["content"], messages[2]["content"]) == ("What is 2+2?", "Thanks!")
    assert "The answer is 4." in json.dumps(messages[1]["content"])


def anthropic_assemble_messages_with_tools(caller: Caller) -> None:
    caller.says("0001-user", "", "List files")
    caller.says("0002-assistant", "", '```tool_call id=toolu_456 name=bash\n{"command":"ls"}\n```')
    caller.says("0003-tool_result", "call_id: toolu_456\ntool: bash\n", "file1.txt\nfile2.txt")
    caller.says("0004-assistant", "", "Here are the files.")
    messages = caller.hook("assemble/10-messages", provider="anthropic")["messages"]
    assert len(messages) == 4
    call, result = messages[1]["content"][0], messages[2]["content"][0]
    assert (call["type"], call["id"], call["name"]) == ("tool_use", "toolu_456", "bash")
    assert messages[2]["role"] == "user"
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "toolu_456")


def _anthropic(caller: Caller, stop: str, *content: object) -> Any:
    usage = {"input_tokens": 100, "output_tokens": 50}
    answer = {"model": "claude-sonnet-4", "stop_reason": stop, "usage": usage, "content": content}
    return caller.hook("receive/10-save", answer, provider="anthropic")


def anthropic_receive_text(caller: Caller) -> None:
    reply = _anthropic(caller, "end_turn", {"type": "text", "text": "Hello!"})
    assert (reply["next_state"], reply["output"]) == ("done", "Hello!")
    assert "stop: end\n" in caller.saved()
    assert "tokens_in: 100\n" in caller.saved()
    assert "Hello!" in caller.saved()


def anthropic_receive_thinking(caller: Caller) -> None:
    thought = {"type": "thinking", "thinking": "Let me reason...", "signature": "sig123"}
    reply = _anthropic(caller, "end_turn", thought, {"type": "text", "text": "42."})
    assert (reply["next_state"], reply["output"]) == ("done", "42.")
    assert "```thinking signature=sig123\nLet me reason...\n" in caller.saved()


def anthropic_receive_tool_calls(caller: Caller) -> None:
    call = {"type": "tool_use", "id": "toolu_123", "name": "bash", "input": {"command": "ls"}}
    reply = _anthropic(caller, "tool_use", {"type": "text", "text": "Let me check."}, call)
    assert reply["next_state"] == "tool_exec"
    assert reply["tool_calls"] == [{"id": "toolu_123", "name": "bash", "input": {"command": "ls"}}]
    assert "Let me check." in caller.saved()
    assert "```tool_call id=toolu_123 name=bash\n" in caller.saved()
    assert "stop: tool_calls\n" in caller.saved()


def assemble_prompts(caller: Caller) -> None:
    write(caller.source("project/.harness") / "prompts/001-system.md", "You are a test agent.\n")
    write(caller.place / "AGENTS.md", "Of the directory in which the caller happens to be.")
    reply = caller.hook("assemble/30-prompts")
    assert (reply["next_state"], reply["system"]) == ("send", "You are a test agent.")
    write(caller.place / "project/AGENTS.md", "# Project Agent\n")
    assert caller.hook("assemble/30-prompts")["system"] == "You are a test agent.\n\n# Project Agent"


def assemble_tools(caller: Caller) -> None:
    caller.with_tool()
    assert [tool["name"] for tool in caller.hook("assemble/20-tools")["tools"]] == ["mock_tool"]


def error_display(caller: Caller) -> None:
    for payload, said in (({"error": "broke"}, "broke"), ({}, "hook pipeline failed (check /dev/null)")):
        assert caller.hook("error/10-display", payload) == {"output": f"error: {said}"}
        assert events(caller.session)[-1] == dumps({"type": "error", "message": said})


def hashline_read(caller: Caller) -> None:
    path = write(caller.place / "a.txt", "alpha\nbeta\ngamma\ndelta\nepsilon\n")
    shown = caller.lines(path)
    assert [number for number, _, _ in shown] == ["1", "2", "3", "4", "5"]
    assert [text for _, _, text in shown] == ["alpha", "beta", "gamma", "delta", "epsilon"]
    assert [text for _, _, text in caller.lines(path, offset=2, limit=2)] == ["beta", "gamma"]
    (_, first, _), _, (_, third, _) = caller.lines(write(caller.place / "b.txt", "hello\nworld\nhello\n"))
    assert first == third
    (_, first, _), (_, second, _) = caller.lines(write(caller.place / "c.txt", "}\n}\n"))
    assert first != second


def hashline_edit_basic(caller: Caller) -> None:
    def edited(text: str, **edit: object) -> str:
        path = write(caller.place / "a.txt", text)
        assert caller.edit(path, **edit).code == 0
        return path.read_text()

    replace = {"type": "replace_range"}
    assert edited("a\nb\nc\n", **replace, pos=2, end=2, content=["X"]) == "a\nX\nc\n"
    assert edited("1\n2\n3\n4\n5\n", **replace, pos=2, end=4, content=["x", "y"]) == "1\nx\ny\n5\n"
    assert edited("a\nb\nc\n", **replace, pos=2, end=2, content=None) == "a\nc\n"
    assert edited("a\nb\nc\n", type="append_at", pos=2, content=["new"]) == "a\nb\nnew\nc\n"
    assert edited("a\nb\nc\n", type="prepend_at", pos=2, content=["new"]) == "a\nnew\nb\nc\n"
    assert edited("a\n", type="append_file", content=["x", "y"]) == "a\nx\ny\n"
    assert edited("a\n", type="prepend_file", content=["x", "y"]) == "x\ny\na\n"
    # What a model has read is no part of the text, and a short file is shown anew.
    assert edited("alpha\n", type="append_at", pos=1, content=["1#MX:beta"]) == "alpha\nbeta\n"
    again = caller.edit(caller.place / "a.txt", type="append_file", content=["c"]).out.splitlines()
    assert again[1].startswith("1#MX:alpha")


def hashline_edit_special_chars(caller: Caller) -> None:
    texts = ["$100 and $VAR", "`echo hello`", r"path\to\file\n", "it's a 'test'", '"hello"', "a | b > c 2>&1"]
    path = write(caller.place / "a.txt", "before\n" + "x\n" * len(texts))
    for number, text in enumerate(texts, 2):
        caller.edit(path, type="replace_range", pos=number, end=number, content=[text])
    assert path.read_text().splitlines() == ["before", *texts]


def hashline_edit_validation(caller: Caller) -> None:
    path = write(caller.place / "a.txt", "alpha\nbeta\ngamma\n")
    stale = "ZZ" if caller.lines(path)[1][1] != "ZZ" else "PP"

    def refused(anchor: str) -> str:
        ran = caller.edit(path, type="replace_range", pos=anchor, end=anchor, content=["x"])
        assert ran.code == 1
        return ran.out

    assert "MISMATCH" in (said := refused(f"2#{stale}"))
    assert ">>>" in said
    assert "invalid" in refused("2#ab")
    assert "invalid" in refused("2ZZ")
    refused("2#Z")
    refused("99#ZZ")


def _chat(caller: Caller, finish: str, message: object) -> Any:
    usage = {"prompt_tokens": 50, "completion_tokens": 25}
    answer = {"model": "gpt-4", "choices": [{"finish_reason": finish, "message": message}], "usage": usage}
    return caller.hook("receive/10-save", answer, provider="openai")


def openai_receive_text(caller: Caller) -> None:
    reply = _chat(caller, "stop", {"content": "Hello from OpenAI!", "tool_calls": None})
    assert (reply["next_state"], reply["output"]) == ("done", "Hello from OpenAI!")
    assert "role: assistant\n" in caller.saved()
    assert "stop: end\n" in caller.saved()
    assert "Hello from OpenAI!" in caller.saved()


def openai_receive_tool_calls(caller: Caller) -> None:
    function = {"name": "read_file", "arguments": '{"path":"/a/b"}'}
    call = {"id": "call_abc", "type": "function", "function": function}
    reply = _chat(caller, "tool_calls", {"content": "", "tool_calls": [call]})
    assert reply["next_state"] == "tool_exec"
    assert reply["tool_calls"] == [{"id": "call_abc", "name": "read_file", "input": {"path": "/a/b"}}]
    assert "stop: tool_calls\n" in caller.saved()
    assert "```tool_call id=call_abc name=read_file\n" in caller.saved()


def read_file_limit(caller: Caller) -> None:
    path = write(caller.place / "big.txt", "".join(f"line {number}\n" for number in range(1, 101)))
    caller.env["HARNESS_READ_LIMIT"] = "50"
    ran = caller.tool("read_file", path=str(path))
    assert ran.code == 1
    assert "100 lines" in ran.out
    assert "(limit: 50)" in ran.out
    assert [text for _, _, text in caller.lines(path, limit=10)] == [f"line {n}" for n in range(1, 11)]
    assert caller.lines(path, offset=90)[0][2] == "line 90"
    caller.env["HARNESS_READ_LIMIT"] = "200"
    assert len(caller.lines(path)) == 100


def resolve_defaults(caller: Caller) -> None:
    write(caller.source() / "providers/testprov.conf", "model=test-model-7b\n")

    def model(provider: str, model: str = "") -> str:
        return str(caller.hook("resolve/30-defaults", {"provider": provider, "model": model})["model"])

    assert model("testprov") == "test-model-7b"
    assert model("testprov", "already-set") == "already-set"
    assert model("") == ""


def resolve_settings(caller: Caller) -> None:
    """Read the most local file only; a model belongs to its provider."""
    write(caller.source("far") / "settings.conf", "provider=far\nmodel=away\n")
    far = caller.env["HARNESS_SOURCES"]
    write(caller.source() / "settings.conf", "provider=near\nmodel=small\n")
    caller.env["HARNESS_SOURCES"] = f"{far}:{caller.env['HARNESS_SOURCES']}"
    for asked, found in ((("", ""), ("near", "small")), (("", "mine"), ("near", "mine")), (("zai", ""),) * 2):
        payload, expected = (dict(zip(("provider", "model"), each, strict=True)) for each in (asked, found))
        assert caller.hook("resolve/10-settings", payload) == expected


def skill_by_frontmatter_name(caller: Caller) -> None:
    head = "---\nname: published-name\ndescription: a test skill\n---\n"
    write(caller.source() / "skills/folder-name/SKILL.md", f"{head}hello from the skill\n")
    ran = caller.tool("skill", name="published-name")
    assert (ran.code, "hello from the skill" in ran.out) == (0, True)
    assert caller.tool("skill", name="folder-name").code == 1


def start_init(caller: Caller) -> None:
    assert caller.hook("start/10-init")["next_state"] == "assemble"
    write(caller.session / "session.conf", "cwd=/nowhere\n")
    assert caller.hook("start/10-init")["next_state"] == "assemble"


def _tool_done(caller: Caller, *left: object, error: bool = False, result: str = "file.txt") -> Any:
    done = {"call_id": "c1", "name": "bash", "input": {}, "result": result, "error": error}
    return caller.hook("tool_done/10-save", {**done, "tool_calls": left})


def tool_done_error(caller: Caller) -> None:
    assert _tool_done(caller, error=True, result="permission denied") == {"next_state": "assemble"}
    assert "error: true\n" in caller.saved("tool_result")
    assert "permission denied" in caller.saved("tool_result")


def tool_done_last(caller: Caller) -> None:
    assert _tool_done(caller) == {"next_state": "assemble"}
    assert (caller.session / "messages/0001-tool_result.md").is_file()


def tool_done_more(caller: Caller) -> None:
    left = {"id": "c2", "name": "bash", "input": {"command": "pwd"}}
    assert _tool_done(caller, left) == {"next_state": "tool_exec", "tool_calls": [left]}
    assert "file.txt" in caller.saved("tool_result")
    keys = fields(caller.session / "messages/0001-tool_result.md")
    assert list(keys) == ["role", "seq", "timestamp", "call_id", "tool", "error"]
    assert (keys["call_id"], keys["tool"]) == ("c1", "bash")
    assert '{"type":"tool_done","id":"c1","name":"bash","seq":"0001","error":"false"}' in events(
        caller.session
    )


def _tool_exec(caller: Caller, *names: str) -> Any:
    calls = [{"id": f"c{place}", "name": name, "input": {}} for place, name in enumerate(names, 1)]
    return caller.hook("tool_exec/10-exec", {"tool_calls": calls})


def tool_exec(caller: Caller) -> None:
    caller.with_tool()
    assert dumps(_tool_exec(caller, "mock_tool")) == dumps({
        "call_id": "c1", "name": "mock_tool", "input": {}, "result": "mock result", "error": False,
        "tool_calls": [], "next_state": "tool_done",
    })  # fmt: skip


def tool_exec_not_found(caller: Caller) -> None:
    caller.with_tool()
    done = _tool_exec(caller, "nonexistent")
    assert (done["error"], done["next_state"]) == (True, "tool_done")
    assert "not found" in done["result"]
    assert "not found" in _tool_exec(caller, "bash")["result"]


def tool_exec_queue(caller: Caller) -> None:
    caller.with_tool()
    assert [call["id"] for call in _tool_exec(caller, "mock_tool", "mock_tool")["tool_calls"]] == ["c2"]


def write_file_path(caller: Caller) -> None:
    for wrong in ({}, {"content": "hello"}, {"path": None, "content": "hello"}):
        ran = caller.tool("write_file", **wrong)
        assert (ran.code, "path is required" in ran.out) == (1, True)
    path = caller.place / "out.txt"
    assert caller.tool("write_file", path=str(path), content="hello world").code == 0
    assert path.read_text().startswith("hello world")


def _interrupted_by(caller: Caller, *keys: str) -> None:
    """Stop a turn whose `start` hook is slow with `keys`, and see that the hook has ended."""
    home = caller.place / "home"
    slow = '#!/bin/sh\ncat >/dev/null\necho $$ >"$HARNESS_HOME/slow"\nexec sleep 60\n'
    write(home / "hooks.d/start/05-slow", slow, 0o755)
    env = {"HARNESS_HOME": str(home), "OPENAI_API_URL": "http://127.0.0.1:9/v1/chat/completions"}
    with person(cwd=caller.place, env=env) as someone:
        someone.has_on_screen("You:")
        someone.types("hello\r")
        someone.until((home / "slow").exists)
        for key in keys:
            someone.types(key)
        number = int((home / "slow").read_text())
        someone.until(lambda: not Path(f"/proc/{number}").exists())
        assert someone.leaves("\x04") == 0


def repl_sigint_cleanup(caller: Caller) -> None:
    _interrupted_by(caller, "\x03")


def repl_double_sigint(caller: Caller) -> None:
    _interrupted_by(caller, "\x03", "\x03")


SAME = cases()


def agent_loop_exit_trap(caller: Caller) -> None:
    """End a turn by `hs` itself: it has no shell functions that could be read in."""
    slow = "#!/bin/sh\ncat >/dev/null\nkill -TERM $PPID\nexec sleep 60\n"
    write(caller.place / "home/hooks.d/start/05-slow", slow, 0o755)
    caller.env |= {"HARNESS_HOME": str(caller.place / "home"), "OPENAI_API_URL": "http://127.0.0.1:9/v1"}
    assert caller.run("go").code == 130
    (stream,) = caller.place.glob("home/sessions/*/.stream")
    assert json.loads(stream.read_text().splitlines()[-1]) == {"type": "done"}


def bash_timeout(caller: Caller) -> None:
    ran = caller.tool("bash", command="echo begun; sleep 60", timeout=1)
    assert (ran.code, ran.out.splitlines()[0]) == (1, "begun")
    assert "timed out after 1 seconds" in ran.out
    assert caller.tool("bash", command="echo hello", timeout=5) == Ran(0, "hello")


def _result_without_a_call(caller: Caller, provider: str) -> None:
    caller.says("0001-user", "", "Go")
    text = "before\n---\nrole: tool_result\ncall_id: call_old\n---\nafter"
    caller.says("0002-tool_result", "call_id: call_new\ntool: bash\nerror: false\n", text)
    assert len(caller.hook("assemble/10-messages", provider=provider)["messages"]) == 1
    result = caller.session / "messages/0002-tool_result.md"
    result.rename(result.with_name("0003-tool_result.md"))
    caller.says("0002-assistant", "", "```tool_call id=call_new name=bash\n{}\n```")
    answered = caller.hook("assemble/10-messages", provider=provider)["messages"][-1]
    assert (answered.get("output") or answered["content"]) == text


def openai_assemble_embedded_frontmatter(caller: Caller) -> None:
    caller.env["OPENAI_API_URL"] = "http://127.0.0.1:9/v1/chat/completions"
    _result_without_a_call(caller, "openai")


def chatgpt_assemble_embedded_frontmatter(caller: Caller) -> None:
    _result_without_a_call(caller, "chatgpt")


def hooks_unknown_stage(caller: Caller) -> None:
    assert caller.run("hooks", "nonexistent-stage").code == 2
    assert caller.run("hooks", "resolve").code == 0


def session_show_missing_id(caller: Caller) -> None:
    assert caller.run("session", "show") == Ran(2, "")


def repl_wait_pid(caller: Caller) -> None:
    """Stop a turn at the prompt: the original's test looks for words in its script."""
    repl_sigint_cleanup(caller)


def resume_command(caller: Caller) -> None:
    assert caller.run("resume", stdin="/quit\n").code != 0


def tool_exec_precomputed(caller: Caller) -> None:
    caller.with_tool()
    write(caller.session / ".tool_dispatch/c1.json", '{"result":"precomputed","error":false}')
    assert _tool_exec(caller, "mock_tool")["result"] == "mock result"


DIFFERENT = cases()[len(SAME) :]


@pytest.mark.parametrize("case", SAME, ids=lambda case: case.__name__)
def test_a_caller_meets_what_it_knows(caller: Caller, case: Case) -> None:
    case(caller)


@pytest.mark.parametrize("case", DIFFERENT, ids=lambda case: case.__name__)
def test_what_stays_different_is_named_with_its_reason(caller: Caller, case: Case) -> None:
    case(caller)
    name = case.__name__.replace("_", "-")
    row = re.compile(rf"^- `{name}`: .{{20,}} Why: .{{20,}}$", re.MULTILINE)
    assert row.search(PROTOCOL.read_text()), case.__name__


def test_there_are_41_cases() -> None:
    assert (len(SAME), len(SAME) + len(DIFFERENT)) == (32, 41)


def test_a_source_of_a_project_that_is_not_trusted_is_not_used_whoever_names_it(caller: Caller) -> None:
    write(caller.source("project/.harness") / "tools/mock_tool", TOOL, 0o755)
    assert "not found" in _tool_exec(caller, "mock_tool")["result"]


def test_agents_md_beside_a_source_above_the_repository_counts(caller: Caller, hs: Hs) -> None:
    write(caller.place / "AGENTS.md", "Of all projects here.")
    write(caller.place / "one/AGENTS.md", "Of this one.")
    write(caller.place / "one/.git/HEAD", "")
    (caller.place / ".harness").mkdir()
    said = hs("hook", "assemble/30-prompts", cwd=caller.place / "one", stdin="{}")
    system = json.loads(said.out)["system"]
    assert system.endswith("Of all projects here.\n\nOf this one.")
