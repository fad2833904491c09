"""A report fits on one screen, whatever it is about, and nothing in it is markup or moves a cursor."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness_lib.rules.run_records import Closed, Opened, Ran
from harness_lib.rules.stats import Counts
from harness_lib.runs import report_text
from harness_lib.runs.report_decisions import Decision
from harness_lib.runs.report_facts import Checked, Facts, Merged, Work
from harness_lib.system.git.history import Size
from harness_lib.text import harmless

TEXT = st.text(max_size=300) | st.sampled_from(
    ["\x1b[31mred", "\u202eabc", "</script>", "a\nb", "| x |", "`x`", "日本" * 60]
)
NAME = st.from_regex(r"[a-z0-9]{1,100}", fullmatch=True)
NUMBER = st.integers(0, 10**6)
SECONDS = st.floats(0, 10**6)
COMMAND = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=300)
KINDS = st.sampled_from(
    ["red", "halted", "merge", "lacks", "failed", "missing", "check", "look", "proposals", "again"]
)
DECISION = st.builds(
    Decision, KINDS, NAME | st.just(""), TEXT, TEXT, st.lists(COMMAND, min_size=1, max_size=3).map(tuple)
)
WORK = st.builds(Work, NAME, TEXT, SECONDS, SECONDS, NUMBER, NUMBER, st.none() | NUMBER, st.none() | NUMBER)
RAN = st.builds(
    Ran,
    st.builds(Opened, NAME, SECONDS, NUMBER, TEXT, TEXT, TEXT, NUMBER, NAME),
    st.none() | st.builds(Closed, SECONDS, st.sampled_from(["done", "limit", "stuck"]), st.booleans()),
    SECONDS,
    st.just(()),
    alive=st.booleans(),
)
SIZE = st.builds(Size, NUMBER, NUMBER, NUMBER)
MERGED = st.builds(Merged, TEXT, st.none() | NAME, st.none() | NAME, NUMBER, SIZE)


def many(of: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(of, max_size=30).map(tuple)


FACTS = st.builds(
    Facts,
    began=SECONDS,
    ended=SECONDS,
    runs=st.lists(RAN, max_size=5).map(tuple),
    cost=SECONDS,
    tokens=NUMBER,
    counts=st.builds(Counts, *[NUMBER] * 10),
    done_already=NUMBER,
    merged=st.none() | MERGED,
    checked=st.none() | st.builds(Checked, NAME, NUMBER, NUMBER),
    rescued=NUMBER,
    dropped=many(NAME),
    decisions=many(DECISION),
    waiting=many(NAME),
    done=many(WORK),
    others=many(WORK),
    touched=many(st.tuples(NAME, TEXT)),
    again=TEXT.map(lambda text: harmless(text, instead=" ")),
    commands=many(COMMAND),
    machines=many(st.tuples(NAME, NUMBER)),
    elsewhere=many(MERGED),
)


# A title that leaves little room for its command.
LONG = Facts(
    began=0,
    ended=0,
    runs=(),
    cost=0,
    tokens=0,
    counts=Counts(*[0] * 10),
    done_already=0,
    merged=None,
    checked=None,
    rescued=0,
    dropped=(),
    decisions=(Decision("red", "0", "", "", ("0" * 42,)),),
    waiting=(),
    done=(Work("0" * 12, "0" * 12, 0, 0, 0, 0, None, None),),
    others=(),
    touched=(),
    again="",
    commands=(),
    machines=(),
    elsewhere=(),
)


@example(LONG, 20, [])
@given(FACTS, st.integers(20, 200), st.lists(TEXT, max_size=3))
def test_it_fits_on_a_screen_and_no_title_is_markup(facts: Facts, width: int, first: list[str]) -> None:
    lines = report_text.lines(facts, first, width=width)
    whole = report_text.lines(facts, whole=True)

    assert len(lines) <= report_text.MOST_LINES
    assert max(map(len, lines)) <= max(width, report_text.LEAST_WIDTH)
    assert all(line == harmless(line) for line in [*lines, *whole])
    assert all(decision.commands[0] in "\n".join(whole) for decision in facts.decisions)
    for line in report_text.markdown(facts):
        plain = line.replace("<code>", "").replace("</code>", "").replace("<br>", "")
        assert not {*"<`"} & {*plain}
        assert plain == harmless(plain)


@settings(max_examples=3)
@given(FACTS, WORK)
def test_what_nobody_has_reported_is_an_empty_cell(facts: Facts, work: Work) -> None:
    unknown = work._replace(cost=0.0, tries=0, files=None)
    row = report_text.markdown(facts._replace(done=(unknown,)))[-3]
    assert [cell.strip() for cell in row.split("|")[3:]] == ["", "", "", ""]


@given(FACTS)
def test_a_beginning_that_fills_the_screen_is_cut(facts: Facts) -> None:
    lines = report_text.lines(facts, ["why it has ended " * 20] * report_text.MOST_LINES)

    assert len(lines) <= report_text.MOST_LINES
    assert ("LOOK AT" in lines, lines[-1].startswith("AGAIN: ")) == (bool(facts.decisions), True)


@given(FACTS)
def test_what_to_type_has_room_before_the_reason(facts: Facts) -> None:
    why, retry = "harness run starts nothing (all are used up)", f"harness retry {' task-001' * 5}"
    assert report_text.lines(facts._replace(again=why, commands=(retry,)))[-1].endswith(f"nothing; {retry}")


@given(FACTS, st.sampled_from(["", ", and is tried again"]), st.integers(80, 200))
def test_however_long_the_reason_the_count_stands_whole(facts: Facts, again: str, width: int) -> None:
    why = f"failed 1 of 3{again}: {'No module named payments. ' * 9}"
    failed = Decision("failed", "task-001", "Charge the card " * 9, why, ("harness log --task task-001",))

    text = "\n".join(report_text.lines(facts._replace(decisions=(failed,)), width=width))

    assert "failed 1 of 3" in text


@given(FACTS)
def test_of_many_branches_a_screen_says_what_was_merged_into_some_and_names_the_others(facts: Facts) -> None:
    merged = Merged("release", "a" * 40, "b" * 40, 1, Size(1, 1, 0))
    facts = facts._replace(merged=merged, elsewhere=(merged,) * report_text.MOST_LINES)

    lines = report_text.lines(facts)

    assert len(lines) <= report_text.MOST_LINES
    assert sum(line.startswith("release: 1 commit, ") for line in lines) == report_text.BRANCHES
    assert any(line.startswith("Merged into other branches, too: release, ") for line in lines)


def test_a_reason_that_does_not_fit_ends_with_dots_and_one_that_fits_is_whole() -> None:
    cut_off = report_text._wrapped("the sandbox denied " * 20, 40)

    assert (len(cut_off), cut_off[-1][-1]) == (report_text.WRAPPED, "…")
    assert report_text._wrapped("the sandbox denied it", 10) == ["the", "sandbox", "denied it"]
