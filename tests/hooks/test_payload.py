"""Whatever a host sends is survived, and what can be understood of it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lib.hookio import payload
from tests.hooks.conftest import ME

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
KEYS = st.sampled_from(
    ["session_id", "cwd", "hook_event_name", "agent_id", "background_tasks", "tool_input", "stop_hook_active"]
)


@settings(max_examples=50)
@given(st.binary() | st.dictionaries(KEYS | st.text(), JSON).map(lambda found: json.dumps(found).encode()))
def test_nothing_breaks_it(data: bytes) -> None:
    found = payload.read("Stop", data)

    assert isinstance(found.session_id, str)
    assert all(isinstance(each, bool) for each in found.background())
    assert all(isinstance(path, str) for path in found.edited_paths())


@given(st.integers(min_value=0, max_value=200))
def test_of_a_torn_payload_the_whole_fields_count(length: int) -> None:
    data = json.dumps({"session_id": ME, "cwd": "/p", "last_assistant_message": "x" * 100}).encode()

    found = payload.read("Stop", data[:length])

    assert found.session_id in ("", ME)
    assert found.session_id == ME or length < 58


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"a":' * 100_000, b'{"session_id": {"a": ' + b"[" * 100_000]
)
def test_deep_nesting_is_survived(data: bytes) -> None:
    assert payload.read("Stop", data).session_id == ""


def test_names_are_taken_as_the_list_has_them() -> None:
    fields = {"session_id": " a\x00b\n" + "c" * 500, "agent_id": 7}

    found = payload.Payload("Stop", fields)

    assert found.session_id == ("ab" + "c" * 500)[: payload.LONGEST_NAME]
    assert found.agent_id == ""


@pytest.mark.parametrize(
    ("tool", "paths"),
    [
        ({"file_path": "/p/a"}, ["/p/a"]),
        ({"notebook_path": "a.ipynb"}, ["a.ipynb"]),
        ('{"path": "a"}', ["a"]),
        (
            {"command": "*** Begin Patch\n*** Update File: a b.txt\n@@\n*** Add File: c\n*** End Patch"},
            ["a b.txt", "c"],
        ),
        ({"command": "echo '*** Update File: a'"}, []),
        (["a"], []),
        (None, []),
    ],
)
def test_the_files_that_a_tool_changes(tool: object, paths: list[str]) -> None:
    assert payload.Payload("PreToolUse", {"tool_input": tool}).edited_paths() == paths
