"""The context of a model: counted, cut and summarised; and models, by what is known of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.loop import context, hosted, trust
from harness_lib.loop.context import User, entries
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.session import Call, Message, render_blocks
from tests.loop.conftest import ANTHROPIC, CHAT, DONE, Follow, Go, Hs, Serve, Wire, session_of
from tests.loop.in_process import begun
from tests.loop.servers.script import Step, Use, say
from tests.loop.source_files import write_models, write_provider


def said(seq: int, size: int = 40, role: str = "user", **fields: str) -> Message:
    return Message(seq, role, "x" * size, fields)


def summary(seq: int, text: str, keep: str) -> Message:
    return Message(seq, "summary", text, {"keep": keep})


def calling(seq: int, *calls: Call, **fields: str) -> Message:
    return Message(seq, "assistant", render_blocks(list(calls))[0], fields)


def test_what_a_host_has_counted_goes_before_a_guess() -> None:
    answer = said(2, 4000, "assistant", tokens_in="700", tokens_out="50")

    assert context.tokens([said(1, 9000), answer, said(3, 400)]) == 700 + 50 + 100
    assert context.tokens([said(1, 400), said(2, 40)]) == 110
    # One from before a summary is the size of what that has replaced.
    before = said(2, 80, "assistant", tokens_in="9000", tokens_out="50")
    messages = [said(1), before, said(3, 40, "summary", keep="0002"), said(4, 40)]

    assert context.tokens(messages) == (40 + 80 + 40) // 4


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        # A summary without a place says nothing, and a place behind it hides nothing that came after it.
        *(([summary(2, "x", keep)], ["one", "x5"]) for keep in ("", "two", "-1")),
        ([summary(2, "short", "9999")], ["short", "x5"]),
        # The newest one counts.
        ([summary(2, "old", "1"), said(3, 3), summary(4, "new", "0003")], ["new", "xxx", "x5"]),
    ],
)
def test_a_summary_and_what_is_behind_its_place_are_told(messages: list[Message], told: list[str]) -> None:
    everything = [Message(1, "user", "one"), *messages, Message(5, "user", "x5")]

    assert entries(everything, {}) == [User(text) for text in told]


def test_a_cut_never_parts_a_call_from_its_result() -> None:
    call = calling(3, Call("c1", "bash", "{}"), Call("c2", "bash", "{}"))
    results = [said(seq, 400, "tool_result", call_id=f"c{seq - 3}") for seq in (4, 5)]
    messages = [said(1, 4000), said(2, 4000, "assistant"), call, *results]

    for size in range(400, 8000, 100):
        cut = context.cut(messages, size)
        assert cut is None or cut.keep in {1, 2, 3, 6}, size
    assert context.cut(messages, 1200) == context.Cut(messages[:2], 3)


def test_what_was_asked_last_stays_however_long_it_is() -> None:
    messages = [said(1, 400), said(2, 400, "assistant"), said(3, 400_000)]

    assert context.cut(messages, 1000) == context.Cut(messages[:2], 3)
    assert context.cut(messages[2:], 1000) is None


def test_at_most_twenty_thousand_tokens_stay() -> None:
    messages = [said(seq, 40_000) for seq in range(1, 11)]

    cut = context.cut(messages, 10_000_000)

    assert cut is not None
    assert cut.keep == 9


def test_files_and_skills_are_carried_through_every_summary() -> None:
    skill = '<skill name="deploy">\nAlways ask.\n</skill>'
    calls = calling(
        1,
        Call("a", "read_file", '{"path": "one.py"}'),
        Call("b", "replace", '{"path": "two.py"}'),
        Call("c", "read_file", '{"path": "two.py"}'),
    )
    first = context.carried([calls, Message(2, "tool_result", skill, {"tool": "skill"})])
    more = calling(4, Call("d", "write_file", '{"path": "3"}'))
    second = context.carried([Message(3, "summary", f"So it was.\n\n{first}"), more])

    assert first == (
        f"<read-files>\none.py\n</read-files>\n\n<changed-files>\ntwo.py\n</changed-files>\n\n{skill}"
    )
    assert second == first.replace("two.py", "two.py\n3")


# Of one result a model gets at most a tenth of its context.
LONG = Step(text="Let me see.", uses=(Use("bash", {"command": "printf 'long%.0s' {1..1000}"}),) * 3)
WORDS = {
    "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "chat": "This model's maximum context length is 128000 tokens.",
    "responses": "Your input exceeds the context window of this model.",
}


def summaries(run: Runtime) -> list[str]:
    return [message.body for message in run.session.messages() if message.role == "summary"]


def test_a_session_that_fills_the_context_goes_on_behind_a_summary_inside_a_turn(follow: Follow) -> None:
    write_models("model- context=10000 price_in=1 price_out=1")
    done = say("Done.")
    run, server, ending = follow(CHAT, LONG, LONG, LONG, say("They echoed."), done, cached=True)
    assert ending == DONE

    (summary,) = summaries(run)
    assert "They echoed." in summary
    assert "They echoed." in str(server.requests[-1])
    assert str(server.requests[-1]).count("longlong") < str(server.requests[-2]).count("longlong")
    (path,) = (run.session.directory / "messages").glob("*-summary.md")
    text = path.read_text()
    assert "role: summary\n" in text
    assert "\nkeep: 00" in text
    assert "\ncost: 0." in text
    # What the model has written for us, nobody is shown as an answer.
    assert "They echoed" not in (run.session.directory / ".stream").read_text()


def test_an_overflow_is_answered_by_one_summary(follow: Follow, wire: Wire) -> None:
    over = Step(status=400, said=WORDS[wire.name])
    run, _, ending = follow(wire, LONG, LONG, over, say("They echoed."), say("Done."), cached=True)
    assert ending == DONE

    assert len(summaries(run)) == 1
    assert run.requests == 3


OVER = Step(status=400, said=WORDS["chat"])


@pytest.mark.parametrize(
    ("steps", "requests", "summed"),
    [
        # Of one message there is nothing to summarise; of more, the summary was refused, too.
        ((OVER,), 1, 0),
        ((LONG, LONG, OVER), 4, 0),
        ((LONG, LONG, OVER, say("They echoed."), OVER), 5, 1),
    ],
    ids=["at first", "later", "behind a summary"],
)
def test_an_overflow_that_no_summary_helps_ends_the_turn(
    follow: Follow, steps: tuple[Step, ...], requests: int, summed: int
) -> None:
    run, server, ending = follow(CHAT, *steps, cached=True)
    assert ending.failed
    assert WORDS["chat"] in ending.output
    assert (len(server.requests), len(summaries(run))) == (requests, summed)


@pytest.mark.parametrize(
    "summary",
    [Step(status=400, said="no summaries today"), say(""), say("much " * 9000)],
    ids=["fails", "is empty", "frees too little"],
)
def test_a_summary_that_does_not_help_is_shown_and_not_repeated(
    follow: Follow, project: Path, summary: Step
) -> None:
    write_models("model- context=10000 price_in=1 price_out=1")
    log = project / "log"
    run, server, ending = follow(
        CHAT, LONG, LONG, LONG, summary, LONG, say("Done."), HARNESS_LOG=str(log), cached=True
    )
    assert ending == DONE

    assert summaries(run) == []
    assert len(server.requests) == 6
    assert log.read_text().count("not summarised") == 1
    # A summary of no use has cost what it has cost.
    answers = [message for message in run.session.messages() if "tokens_out" in message.fields]
    assert len(answers) == 6 - (summary.status != 200)
    assert run.spent().tokens_out == 5 * len(answers)


def test_an_answer_may_be_no_longer_than_the_context_has_room_for(follow: Follow, wire: Wire) -> None:
    write_models("model- context=20000 output=16000")
    _, server, _ = follow(wire, LONG, say("Done."), cached=True)
    limits = [int(request.get("max_tokens") or request["max_output_tokens"]) for request in server.requests]
    assert limits[0] == 16000
    assert server.cache
    assert limits[1] < limits[0]
    assert limits[1] + server.cache.counts[1].tokens <= 20000, (limits, server.cache.counts)


LIMIT = {"anthropic": "max_tokens", "chat": "max_tokens", "responses": "max_output_tokens"}


def test_an_answer_has_the_output_limit_and_the_cost_of_its_model(go: Go, hs: Hs, wire: Wire) -> None:
    prices = "price_in=1000 price_out=100 price_cached=10 price_write=2000"
    write_models("# ours", f"big- context=9000 output=77 {prices}", "big-other output=5")
    server, _ = go(say("Done."), wire=wire, env={"HARNESS_MODEL": "big-one"})
    assert server.requests[0][LIMIT[wire.name]] == 77
    # Anthropic: 10 plain, 7 cached, 3 written; the others: 6 plain, 4 cached; 5 out.
    expected = {"anthropic": "0.016570", "chat": "0.006540", "responses": "0.006540"}[wire.name]
    answer = session_of() / "messages/0002-assistant.md"
    assert f"\ncost: {expected}\n" in answer.read_text()
    assert f"cost={expected.rstrip('0')}\n" in hs("session", "show", session_of().name).out


def test_without_a_price_the_cost_is_unknown_and_not_zero(go: Go, hs: Hs) -> None:
    write_models("big- context=9000 price_in=cheap price_out=1")
    server, _ = go(say("Done."), env={"HARNESS_MODEL": "big-one"})
    assert server.requests[0]["max_tokens"] == 8192
    assert "cost=unknown\n" in hs("session", "show", session_of().name).out


def test_the_longest_beginning_counts_and_of_equal_ones_the_most_local(home: Path, project: Path) -> None:
    write_models("big-one-n output=2", "big-one output=1", "big- output=3")
    write_models("big-one-n output=22", "big output=4", source=project / ".harness")
    run = begun(project)
    run.sources = [str(home / ".harness"), str(project / ".harness")]
    trust.save(run, run.sources)

    names = ("big-one", "big-one-now", "big-two", "small")
    assert [hosted.model_of(run, name).output for name in names] == [1, 22, 3, 0]


def test_a_provider_of_home_can_say_it_of_its_own_model(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, say("Done."))
    write_models("m output=5")
    write_provider("there", f"{server.address}{CHAT.path}", "output=66", "price_in=1", "price_out=1")

    hs("go", env={"HARNESS_PROVIDER": "there"})
    hs("go", env={"HARNESS_PROVIDER": "there", "HARNESS_MODEL": "m2"})

    assert [request["max_tokens"] for request in server.requests] == [66, 5]


def test_the_models_of_bundled_providers_have_limits_and_prices(go: Go, hs: Hs) -> None:
    server, _ = go(say("Done."), wire=ANTHROPIC)
    assert server.requests[0]["max_tokens"] == 64000
    assert "cost=unknown" not in hs("session", "show", session_of().name).out
