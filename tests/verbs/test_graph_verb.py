"""`harness graph`: every task once, whatever the shape of the dependencies."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from hypothesis import given
from hypothesis import strategies as st

from harness_lib.state.answers import Answers
from harness_lib.task import State, Task
from harness_lib.verbs import graph
from tests.verbs.project import Agent, Project

STATUSES = ("pending", "completed", "failed", "in_progress")


@st.composite
def lists(draw: st.DrawFn) -> State:
    """Draw a list of any dependencies, cycles and self-references among them."""
    size = draw(st.integers(0, 12))
    ids = [f"t{n}" for n in range(size)]
    some = st.lists(st.sampled_from(ids), max_size=4) if ids else st.just([])
    return State(
        tasks=tuple(
            Task(name, name, draw(st.sampled_from(STATUSES)), depends_on=tuple(draw(some))) for name in ids
        )
    )


def chain(length: int) -> State:
    return State(
        tasks=tuple(Task(f"t{n}", depends_on=(f"t{n - 1}",) if n else ()) for n in range(length)),
    )


def drawn(state: State, limit: int | None) -> graph.Drawing:
    return graph.draw(Answers(state, datetime.now(timezone.utc)), limit)


def lines(state: State, limit: int | None = None) -> list[str]:
    return list(graph.plain(drawn(state, limit)))


@given(lists())
def test_every_task_is_drawn_in_full_exactly_once(state: State) -> None:
    full = [row.task.id for row in drawn(state, None).rows if not row.mark]
    assert sorted(full) == sorted(task.id for task in state.tasks)


@given(lists())
def test_every_dependency_is_a_branch_or_a_reference(state: State) -> None:
    """Below each task that is drawn stand exactly the tasks that wait for it."""
    below: dict[str, set[str]] = {task.id: set() for task in state.tasks}
    path: list[str] = []
    for row in drawn(state, None).rows:
        del path[row.depth :]
        if row.depth:
            below[path[-1]].add(row.task.id)
        path.append(row.task.id)
    expected: dict[str, set[str]] = {task.id: set() for task in state.tasks}
    for task in state.tasks:
        for other in task.depends_on:
            expected[other].add(task.id)
    assert below == expected


@given(lists())
def test_a_mermaid_diagram_has_a_node_per_task_and_an_arrow_per_dependency(state: State) -> None:
    text = "\n".join(graph.mermaid(drawn(state, None)))
    assert text.startswith("flowchart TD")
    nodes = re.findall(r'(t\d+)\["(t\d+): t\d+"\]:::(\w+)', text)
    assert {name for _, name, _ in nodes} == {task.id for task in state.tasks}
    alias = {name: node for node, name, _ in nodes}
    for task in state.tasks:
        before = " & ".join(alias[other] for other in dict.fromkeys(task.depends_on))
        assert f"  {before} --> {alias[task.id]}[" in text if before else f"\n  {alias[task.id]}[" in text


@given(st.text())
def test_no_title_breaks_out_of_its_label(title: str) -> None:
    drawing = drawn(State(tasks=(Task("a", title),)), None)
    node = list(graph.mermaid(drawing))[1]
    label = re.fullmatch(r'  t0\["([^"<>`%{}\[\]\\|&]*)"\]:::pending', node)
    assert label, node
    assert re.sub(r"#\d+;", "", label[1]).count("#") == 0
    assert "\n" not in node


def test_a_shared_task_is_shown_once_and_named_again() -> None:
    state = State(tasks=(Task("a"), Task("b", depends_on=("a",)), Task("c", depends_on=("a", "b"))))
    assert lines(state) == [
        "[pending] a: ",
        "├─ [pending] b: ",
        "│  └─ [pending] c: ",
        "└─ c (shown above)",
    ]


def test_a_cycle_is_shown_as_one() -> None:
    state = State(tasks=(Task("a", depends_on=("b",)), Task("b", depends_on=("a",))))
    assert lines(state) == ["[pending] a: ", "└─ [pending] b: ", "   └─ a (a cycle)", "cycle: a -> b -> a"]


def test_a_chain_of_thousands_is_drawn_without_running_off_the_page() -> None:
    drawn = lines(chain(5000))
    assert max(map(len, drawn)) < 110
    assert len(drawn) < 5600


def test_a_long_list_is_cut_and_what_is_completed_goes_first(project: Project, agent: Agent) -> None:
    project.write(*({"id": f"t{n}", "status": "completed" if n < 90 else "pending"} for n in range(100)))
    out = agent("graph").out
    assert out.count("[pending]") == 10
    assert "… and 90 more (harness graph --all)" in out
    assert agent("graph", "--all").out.count("[completed]") == 90


def test_a_diagram_is_nothing_but_a_diagram(project: Project, agent: Agent) -> None:
    """It goes into a file: no next command, no warning in it."""
    assert "no tasks yet" in agent("graph").out
    assert agent("graph", "--format", "mermaid").code == 0
    project.write({"id": "t0"}, {"id": "t1", "depends_on": ["t0"]})
    out = agent("graph", "--format", "mermaid").out
    assert "next:" not in out
    words = [line.strip().split()[0] for line in out.splitlines()]
    assert words == ["flowchart", 't0["t0:', "t0", *["classDef"] * 4]
