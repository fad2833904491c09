"""Which tests a mutant of each room has to pass."""

from __future__ import annotations

# Each room by its own tests. Of the hooks those that ring in this process, as what they start knows no
# mutant, and without a repository, which would take a second for each mutant.
_HERE = ["entry", "hosts", "looking", "messages", "payload", "policy", "visits"]
# And of the list without those that let other processes change it.
_ELSEWHERE = [
    "state/test_sealed.py::test_reading_needs_the_standard_library_only",
    "state/test_sealed.py::test_a_summary_is_read_without_the_rules_and_the_codec",
    "state/filestore/test_publishing.py::test_a_disk_that_fills_anywhere_is_an_error_before_and_a_warning_after",
    "state/filestore/test_publishing.py::test_a_process_that_dies_anywhere_leaves_the_old_list_or_the_new_one",
    "state/filestore/test_store.py::test_no_change_is_lost_between_processes_and_readers_see_it_whole",
    "records/test_record.py::test_a_new_field_is_one_line_and_what_is_written_of_it",
]
_MERGING = [
    f"tests/runs/test_{name}.py"
    for name in (
        "clones",
        "held_work",
        "merge_queue",
        "merged_elsewhere",
        "slots",
        "submodules",
        "surroundings",
        "too_late",
        "two_hand_back",
        "waiting",
    )
]
# These start processes, and nobody knows which lines they run: they try what no other test has noticed.
ANYWAY = ["tests/crash/test_merging.py", "tests/runs/test_run.py"]
TESTS: dict[str, list[str]] = {
    # The order of plans is seen where they are imported.
    "rules": ["tests/rules", "tests/verbs/test_import_plans.py"],
    "hookio": [f"tests/hookio/test_{name}.py" for name in _HERE],
    # What an attempt does is seen through the verbs, where runs merge, and between machines.
    "attempts": [
        *("tests/attempts", "tests/hostile", "tests/verbs", *_MERGING, *ANYWAY),
        "tests/fault_injection/test_bad_repository.py",
        *(
            f"tests/machines/test_{name}.py"
            for name in ("chat", "for_others", "leaving", "survival", "turn", "unusual")
        ),
    ],
    # What it publishes of its records stands in the schemas and on the page of fields; what several machines
    # ask of a database, in three files of theirs.
    "state": [
        *("tests/state", "tests/records"),
        *(f"tests/machines/test_{name}.py" for name in ("cost", "database", "turn")),
        *(f"--deselect=tests/{name}" for name in _ELSEWHERE),
    ],
}
