"""What a run and other terminals leave each other lies below `.harness/`, by the process of the run."""

from __future__ import annotations

from harness_lib.runs import run_snapshot
from harness_lib.system.place.roots import Root


def test_what_was_left_last_is_read_back_by_kind_and_process_until_it_is_taken_away(root: Root) -> None:
    run_snapshot.write_file(root, "board", 7, {"a": 0})
    run_snapshot.write_file(root, "board", 7, {"a": 1})
    run_snapshot.write_file(root, "budget", 7, {"b": [2]})
    run_snapshot.write_file(root, "board", 8, {})

    assert run_snapshot.read_file(root, "board", 7) == b'{"a": 1}'
    assert {path.name for path in root.private.iterdir()} >= {"board-7.json", "budget-7.json", "board-8.json"}
    assert run_snapshot.name_of("budget", 7) == "budget-7.json"
    run_snapshot.remove_file(root, "board", 7)
    run_snapshot.remove_file(root, "board", 7)
    assert run_snapshot.read_file(root, "board", 7) is None
    assert run_snapshot.read_file(root, "budget", 7) == b'{"b": [2]}'
    assert run_snapshot.read_file(root, "board", 8) == b"{}"


def test_the_processes_are_told_by_the_names_of_their_files(root: Root) -> None:
    assert list(run_snapshot.pids(root, "board")) == []
    for pid in (70, 8):
        run_snapshot.write_file(root, "board", pid, {})
    run_snapshot.write_file(root, "budget", 9, {})
    for name in ("board-of-nobody.json", "board-5-4.json", "board-6.txt"):
        (root.private / name).touch()

    assert list(run_snapshot.pids(root, "board")) == [70, 8]
    assert list(run_snapshot.pids(root, "budget")) == [9]


def test_the_stamps_are_others_after_each_change_of_their_kind_and_only_then(root: Root) -> None:
    seen = [run_snapshot.stamps_of(root, "board")]
    assert seen == [[]]
    for pid, act in (
        (7, run_snapshot.write_file),
        (7, run_snapshot.write_file),
        (8, run_snapshot.write_file),
        (7, None),
    ):
        if act is None:
            run_snapshot.remove_file(root, "board", pid)
        else:
            act(root, "board", pid, {})
        seen.append(run_snapshot.stamps_of(root, "board"))
        run_snapshot.write_file(root, "budget", 7, {})
        assert run_snapshot.stamps_of(root, "board") == seen[-1]
    # The same file with another length.
    (root.private / "board-8.json").write_bytes(b"{ }")
    seen.append(run_snapshot.stamps_of(root, "board"))
    assert all(one != other for place, one in enumerate(seen) for other in seen[:place])
    assert [len(each) for each in seen] == [0, 1, 1, 2, 1, 1]


def test_a_file_that_goes_while_we_look_has_no_stamp(root: Root) -> None:
    run_snapshot.write_file(root, "board", 7, {})
    (root.private / "board-8.json").symlink_to("nowhere")
    run_snapshot.write_file(root, "board", 9, {})

    assert len(run_snapshot.stamps_of(root, "board")) == 2
