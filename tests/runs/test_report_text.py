"""A report fits on one screen, whatever it is about, and nothing in it is markup or moves a cursor."""

from __future__ import annotations

from hypothesis import given
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
    merged=st.none()
    | st.builds(
        Merged, TEXT, st.none() | NAME, st.none() | NAME, NUMBER, st.builds(Size, NUMBER, NUMBER, NUMBER)
    ),
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
)


@given(FACTS, st.integers(20, 200), st.lists(TEXT, max_size=3))
def test_it_fits_on_a_screen_all_of_it_names_everything_and_no_title_is_markup(
    facts: Facts, width: int, first: list[str]
) -> None:
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
