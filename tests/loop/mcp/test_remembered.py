"""Which tools a server has is remembered, in an order and under names of ours."""

from __future__ import annotations

import json
import os
from pathlib import Path

from harness_lib.loop.mcp import tools
from tests.loop.conftest import CHAT, Hs, Serve
from tests.loop.mcp_servers import entry, offered
from tests.loop.servers.script import say, use
from tests.loop.source_files import write_servers


def test_what_a_server_has_is_known_without_starting_it_again(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    write_servers(home / ".harness", one=entry())
    server = serve(CHAT, say("Done."))
    env = CHAT.environment(server)
    hs("go", env=env)
    started = (project / "started").read_text(encoding="utf-8")

    hs("go", env=env)
    listed = hs("tools", env=env)

    assert (project / "started").read_text(encoding="utf-8") == started
    assert offered(server.requests[0]) == offered(server.requests[1])
    assert "mcp__one__z_echo" in listed.out


def test_the_order_in_which_a_server_tells_its_tools_changes_no_request(
    hs: Hs, serve: Serve, home: Path
) -> None:
    write_servers(home / ".harness", one=entry())
    server = serve(CHAT, say("Done."))
    hs("go", env=CHAT.environment(server))
    (kept,) = (home / ".harness" / "mcp").iterdir()
    value = json.loads(kept.read_text(encoding="utf-8"))
    kept.write_text(json.dumps({**value, "tools": value["tools"][::-1]}), encoding="utf-8")

    hs("go", env=CHAT.environment(server))

    assert server.requests[0]["tools"] == server.requests[1]["tools"]


def test_names_are_what_hosts_take() -> None:
    long = tools.name_of("server", "x" * 100)
    assert tools.name_of("a.b c", "d/e") == "mcp__a_b_c__d_e"
    assert len(long) == 64
    assert long != tools.name_of("server", "x" * 101)
    assert os.sep not in tools.name_of("../..", "..")


def test_a_list_that_is_old_is_asked_for_beside_the_work_for_the_next_session(
    hs: Hs, serve: Serve, home: Path
) -> None:
    write_servers(home / ".harness", one=entry())
    kept = home / ".harness" / "mcp"
    renewed = f"while ! grep -q z_echo '{kept}'/*.json; do sleep 0.05; done"
    server = serve(CHAT, say("Done."), use("bash", command=renewed), say("Done."))
    env = CHAT.environment(server)
    hs("go", env=env)
    (path,) = kept.iterdir()
    value = json.loads(path.read_text(encoding="utf-8"))
    # As it was told by an older version of the server, long ago.
    value["tools"] = [tool for tool in value["tools"] if tool["name"] != "z_echo"]
    path.write_text(json.dumps(value), encoding="utf-8")
    os.utime(path, (0, 0))

    hs("go", env=env)
    hs("go", env=env)

    # In the session it stays as it was, or the host's cache would be worth nothing.
    shown = [["mcp__one__z_echo" in offered(request)] for request in server.requests]
    assert shown == [[True], [False], [False], [True]]


def test_tools_whose_names_become_one_are_told_apart(hs: Hs, serve: Serve, home: Path) -> None:
    write_servers(home / ".harness", **{"a.b": entry(), "a_b": entry()})
    server = serve(CHAT, say("Done."))

    hs("go", env=CHAT.environment(server))

    names = [name for name in offered(server.requests[0]) if "z_echo" in name]
    assert len(names) == 2
    assert "mcp__a_b__z_echo" in names
