"""Every verb has help with an example that can be typed, is listed with the exit codes, and is one file."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness_lib
from harness_lib import verbs
from harness_lib.cli import main, parser
from harness_lib.errors import Exit, UsageError
from tests.cli.conftest import EXAMPLES, NAMES
from tests.conftest import Harness
from tests.run_to_end import run_to_end


@pytest.mark.parametrize("name", NAMES)
def test_every_verb_has_help_with_a_working_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main([name, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    usage = text.partition("\n\n")[0]
    assert "--json" in text
    assert re.search(r"\S {2}-", usage) is None
    assert "example: harness " in text
    assert EXAMPLES[name][0] == name
    assert parser.parse(EXAMPLES[name]).verb == name


def test_the_program_lists_its_verbs_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["--help"])
    text = capsys.readouterr().out
    listed = re.findall(r"^ {4}([a-z]+)", text, re.MULTILINE)
    assert sorted(listed) == NAMES
    assert (listed[0], listed[-1]) == ("init", "demo")
    for code in Exit:
        assert f" {int(code)} " in text


def test_help_is_shown_as_git_shows_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in ([], ["add"], ["rescue", "show"]):
        shown = []
        for line in (["help", *argv], [*argv, "--help"]):
            with pytest.raises(SystemExit) as ended:
                main.main(line)
            assert ended.value.code == 0
            shown.append(capsys.readouterr().out)
        assert shown[0] == shown[1]


def test_each_verb_is_a_file_and_each_file_a_verb() -> None:
    files = Path(verbs.__path__[0]).glob("[!_]*.py")
    assert sorted(file.stem.rstrip("_") for file in files) == NAMES


def test_no_two_verbs_stand_at_one_place_of_the_help() -> None:
    places = [parser.load(name).HELP_ORDER for name in NAMES]
    assert sorted({*places}) == sorted(places)


def test_a_verb_that_prints_a_brief_loads_no_reader_of_plans() -> None:
    """It was a quarter of the start of `harness claim`."""
    code = "import sys, harness_lib.verbs.claim, harness_lib.verbs.run; print('markdown_it' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_the_version_is_the_packages(harness: Harness) -> None:
    said = harness("--version")
    assert (said.code, said.out) == (0, f"harness {harness_lib.__version__}\n")


def test_the_bare_command_shows_the_first_things_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([]) == 0
    typed = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  harness ")]
    assert [line.split()[1] for line in typed] == ["init", "add", "run", "status", "demo"]
    for line in typed:
        # What is typed stands apart from what it is for.
        command = shlex.split(line.split("   ")[0])
        parser.parse(command[1:])


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("statsu", "harness status"),
        ("Claim", "harness claim"),
        ("xyzzy", "harness --help"),
        # No verb is spelt like these, and newcomers type them.
        ("list", "harness status --all"),
        ("undo", "harness show ID"),
        ("reset", "harness init --start-over"),
        ("uninstall", "harness hooks uninstall --help"),
    ],
)
def test_a_verb_that_is_none_is_answered(typed: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([typed, "task-001"]) == 2
    assert f"{typed!r}" in (said := capsys.readouterr().err)
    assert hint in said


def test_what_other_programs_call_a_verb_is_answered_by_one_of_ours() -> None:
    for word, ours in parser.ELSEWHERE.items():
        assert word not in NAMES
        assert ours.split()[0] in NAMES
        parser.parse([part for part in ours.split() if part != "--help"])


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (["add", "x", "--valdate", "y"], "Did you mean --validate? See: harness add --help"),
        (["add", "x", "--chek", "y"], "Did you mean --check? See: harness add --help"),
        (["run", "--workers", "2"], "Did you mean --jobs? See: harness run --help"),
        # As 0.1.0 took it: neither --merge nor --agent takes the name of a branch.
        (["run", "--target", "main"], "See: harness run --help"),
        (["hooks", "install", "codex"], "Did you mean --agent codex? See: harness hooks --help"),
        (["status", "-f"], "Did you mean --watch? See: harness status --help"),
        (["--jsn", "status"], "Did you mean --json? See: harness --help"),
        (["--all", "status"], "Put the options of a verb after it. See: harness --help"),
        (["claim", "--wiat", "3"], "Did you mean --wait? See: harness claim --help"),
        (["edit", "1", "--max-atempts=3"], "Did you mean --max-attempts? See: harness edit --help"),
        (["status", "--zzzz"], "See: harness status --help"),
        # As 0.1.0 took it; what it is close to by its dashes only deletes.
        (["tidy", "--days", "3"], "See: harness tidy --help"),
        (["status", "more"], "See: harness status --help"),
        (["edit", "1", "2"], "See: harness edit --help"),
        (["note", "1", "a", "trap"], "Put words that belong together in quotes. See: harness note --help"),
    ],
)
def test_a_misspelt_option_is_told_the_one_that_was_meant(typed: list[str], hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        parser.parse(typed)
    assert refused.value.hint == hint


@pytest.mark.parametrize(
    "typed",
    [
        "init --print URL",
        "init --print URL --roles",
        "move --list shop URL",
        "--json init --roles --print URL",
        "init URL --print",
    ],
)
def test_a_word_that_may_be_left_out_stands_before_or_behind_the_options(typed: str) -> None:
    """The argparse of Python 3.10 to 3.12 takes it only before them."""
    assert parser.parse(["store", *typed.split()]).url == "URL"


@pytest.mark.parametrize("password", ["secret", "se/cret", "1/secret", "@secret", "a@secret/b"])
def test_no_password_is_repeated_to_whoever_types_a_word_too_many(password: str) -> None:
    with pytest.raises(UsageError) as refused:
        parser.parse(["store", "init", "x", f"postgresql://me:{password}@host/db"])
    assert "cret" not in refused.value.message


# -- a new verb is one file of its name; nothing else is touched


ROOT = Path(__file__).parents[2]

VERB = '''"""`harness hello`: greet somebody."""

from harness_lib.core.context import Reply

SUMMARY = "greet somebody"
EXAMPLE = "harness hello Ann"
HELP_ORDER = 15


def arguments(parser):
    parser.add_argument("name", help="who is there")


def answer(ctx, args):
    return Reply(f"Hello, {args.name}.")
'''


def test_a_new_verb_is_one_file_and_is_typed_listed_and_meant(tmp_path: Path) -> None:
    top = tmp_path / "copy"
    shutil.copytree(ROOT / "harness_lib", top / "harness_lib")
    (top / "harness_lib/verbs/hello.py").write_text(VERB)

    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        return run_to_end([sys.executable, "-m", "harness_lib", *words], cwd=top)

    assert typed("hello", "Ann").stdout.splitlines()[0] == "Hello, Ann."
    listed = typed("--help").stdout
    assert (
        listed.index("    init ") < listed.index("    hello       greet somebody") < listed.index("    add ")
    )
    assert "example: harness hello Ann" in typed("hello", "--help").stdout
    assert "Did you mean: harness hello" in typed("hallo").stderr


def test_the_page_for_contributors_names_these_files() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    (sentence,) = (line for line in page.splitlines() if line.startswith("A new verb is "))

    assert "one file" in sentence
    assert re.findall(r"`([a-z_/]+/)`", sentence) == ["verbs/"]
