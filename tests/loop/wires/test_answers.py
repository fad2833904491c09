"""An answer counts whole or not at all; what a host refuses is said, and what may pass is asked again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness_lib.loop import hosted, turn
from harness_lib.loop.piped import Json, TransientError
from harness_lib.loop.session import Text, Thinking
from harness_lib.loop.turn import Ending
from harness_lib.loop.wires import http, responses
from harness_lib.loop.wires.answer import Endpoint
from tests.loop.conftest import ANTHROPIC, CHAT, DONE, RESPONSES, WIRES, Follow, Hs, Serve, Wire, bodies
from tests.loop.in_process import begun, calls_of, results_of
from tests.loop.servers.script import Step, Use, say
from tests.loop.source_files import write

LENGTH = {"anthropic": "max_tokens", "chat": "length", "responses": "length"}
# Of how many events an answer is whole: on the chat wire, when its finish reason has come.
WHOLE = {"anthropic": 17, "chat": 9, "responses": 9}


@pytest.mark.parametrize(
    "events",
    [n if n % 3 == 0 else pytest.param(n, marks=pytest.mark.release) for n in range(max(WHOLE.values()) + 1)],
)
def test_a_stream_that_is_cut_anywhere_is_asked_again_and_runs_nothing(
    follow: Follow, wire: Wire, project: Path, events: int
) -> None:
    whole = Step(text="Let me.", uses=(Use("bash", {"command": "echo x >> ran"}),), thinking="hm")
    _, _, ending = follow(wire, replace(whole, events=events), whole, say("Done."))
    assert ending == DONE
    # Cut behind the event that ends an answer, it was whole.
    assert (project / "ran").read_text() == "x\n" * (1 if events < WHOLE[wire.name] else 2)


def test_what_came_of_a_cut_answer_stays_and_is_not_replayed(follow: Follow, wire: Wire) -> None:
    cut = {"anthropic": 5, "chat": 3, "responses": 3}[wire.name]
    run, server, _ = follow(wire, Step(text="half of it", events=cut), say("Done."))
    (kept,) = [message for message in run.session.messages() if message.role == "error"]
    assert kept.body
    assert "half" not in str(server.requests[-1])


def test_an_answer_that_is_never_whole_is_an_error(follow: Follow, wire: Wire) -> None:
    _, server, ending = follow(wire, Step(text="half of it", events=2))
    assert ending.failed
    assert "cut off" in ending.output
    assert len(server.requests) > 1


NO_OBJECT = "are not a JSON object"


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ('{"command":"echo x >> ran', NO_OBJECT),
        ("[1]", NO_OBJECT),
        ('{"timeout":5}', "not run"),
        ('{"command":["ls"]}', "command must be a string"),
        ("[" * 100_000, NO_OBJECT),
        # No JSON has such a number: a host cannot read the request that repeats it.
        *(
            (f'{{"command": "echo x >> ran", "other": {number}}}', NO_OBJECT)
            for number in ("NaN", "-Infinity", "1e999")
        ),
    ],
    ids=["cut", "a list", "one missing", "one a list", "nested without end", "NaN", "-Infinity", "1e999"],
)
def test_a_call_whose_arguments_are_none_does_not_run_and_the_model_is_told(
    follow: Follow, wire: Wire, project: Path, raw: str, told: str
) -> None:
    good = Use("bash", {"command": "echo good >> ran"}, id="c2")
    run, server, ending = follow(wire, Step(uses=(Use("bash", raw=raw, id="c1"), good)), say("Done."))
    assert (ending, len(server.requests)) == (DONE, 2)

    assert (project / "ran").read_text() == "good\n"
    assert told in results_of(run)[0]


def test_of_an_answer_that_was_cut_by_its_length_nothing_runs(
    follow: Follow, wire: Wire, project: Path
) -> None:
    cut = Step(uses=(Use("bash", {"command": "echo x >> ran"}),), stop=LENGTH[wire.name])
    run, _, ending = follow(wire, cut, say("Done."))
    assert ending == DONE

    assert not (project / "ran").exists()
    assert "length" in results_of(run)[0]


def test_three_answers_without_a_call_that_can_run_end_the_turn(follow: Follow, wire: Wire) -> None:
    _, server, ending = follow(wire, Step(uses=(Use("bash", raw="{"),)))
    assert ending.failed
    assert len(server.requests) == 3


@pytest.mark.parametrize("ids", [("", ""), ("same", "same")])
def test_calls_with_missing_or_equal_ids_get_ours(follow: Follow, wire: Wire, ids: tuple[str, str]) -> None:
    uses = tuple(Use("bash", {"command": f"echo {number}"}, id=name) for number, name in enumerate(ids))
    run, _, ending = follow(wire, Step(uses=uses), say("Done."))
    assert ending == DONE

    assert len({call.id for call in calls_of(run)}) == 2
    assert results_of(run) == ["0", "1"]


def test_tokens_of_an_answer_stand_in_its_file(follow: Follow, wire: Wire) -> None:
    run, _, _ = follow(wire, say("Done."))
    fields = run.session.messages()[-1].fields
    counted = ("20", "7", "3") if wire is ANTHROPIC else ("10", "4", "0")
    assert (fields["tokens_in"], fields["tokens_cached"], fields["tokens_cache_write"]) == counted
    assert fields["tokens_out"] == "5"


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "try another model (--model)"),
        (401, "Check the key."),
        (403, "Check the key and what it may use."),
        # Many hosts name an address to which a client of theirs adds the rest.
        (404, "Check the address and the model. The request went to {}."),
        (413, "The request is too large."),
        (422, "try another model (--model)"),
    ],
)
def test_what_will_not_pass_is_asked_once(follow: Follow, wire: Wire, status: int, advice: str) -> None:
    _, server, ending = follow(wire, Step(status=status, said="because of this"))
    assert ending.failed
    assert str(status) in ending.output
    assert "because of this" in ending.output
    assert advice.format(f"{server.address}{wire.path}") in ending.output
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 524, 529])
def test_what_may_pass_is_asked_again_until_it_has(follow: Follow, wire: Wire, status: int) -> None:
    _, _, ending = follow(wire, Step(status=status), Step(status=status), say("At last."))
    assert ending == Ending("At last.", failed=False)


def test_a_limit_of_hours_is_not_waited_for(follow: Follow, wire: Wire) -> None:
    _, server, ending = follow(wire, Step(status=429, headers=(("retry-after", "7200"),)), say("never"))
    assert ending.failed
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "said", "code"),
    [
        # As of a limit that passes, and of a field that is refused.
        (429, "You exceeded your current quota", "insufficient_quota"),
        (400, "Your credit balance is too low to access the Anthropic API", "invalid_request_error"),
        (402, "Insufficient Balance", "invalid_request_error"),
    ],
)
def test_an_account_without_credit_is_not_asked_again(
    follow: Follow, status: int, said: str, code: str
) -> None:
    _, server, ending = follow(CHAT, Step(status=status, said=said, code=code), say("never"))
    assert ending.failed
    assert ending.output.endswith(f"{said}. Add credit with the provider, or check its plan.")
    assert len(server.requests) == 1


def test_a_redirect_gets_no_key(follow: Follow, serve: Serve, wire: Wire) -> None:
    other = serve(wire, say("caught"))
    _, _, ending = follow(wire, Step(status=307, headers=(("location", f"{other.address}{wire.path}"),)))
    assert ending.failed
    assert other.address in ending.output
    assert other.requests == []


@pytest.mark.parametrize("key", ["two\nlines", "sch\u00f6n"])
def test_a_key_that_no_header_can_carry_is_said_and_not_shown(follow: Follow, key: str) -> None:
    _, server, ending = follow(CHAT, say("never"), OPENAI_API_KEY=key)
    assert ending.failed
    assert "no header can carry" in ending.output
    assert key not in ending.output
    assert server.requests == []


def test_a_word_in_place_of_a_key_is_not_cut_out_of_what_a_host_says(follow: Follow) -> None:
    """Local servers want any, and get `x`."""
    _, _, ending = follow(CHAT, Step(status=404, said="max exceeded"), OPENAI_API_KEY="x")
    assert "max exceeded" in ending.output


URL = "url=http://127.0.0.1:9/v1\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (f"{URL}header.x-name=sch\u00f6n", "line header.x-name of there"),
        (f"{URL}header.my name=x", "line header.my name of there"),
        ("auth_env=THERE_KEY", "no url="),
    ],
)
def test_a_variant_that_cannot_be_asked_is_named_and_its_key_goes_nowhere(
    hs: Hs, lines: str, said: str
) -> None:
    write("providers/there.conf", f"protocol=openai\nmodel=m\n{lines}\n")

    answer = hs("go", env={"HARNESS_PROVIDER": "there", "THERE_KEY": "sesame"})

    assert (answer.code, said in answer.err) == (7, True), answer.err


def test_a_header_of_its_own_takes_the_place_of_ours(project: Path) -> None:
    there = f"protocol=openai\n{URL}auth_env=KEY\nheader.Authorization=Bearer mine\n"
    write("providers/there.conf", there)
    run = begun(project, HARNESS_PROVIDER="there", KEY="sesame")

    assert hosted.host(run).at(run).headers == {"authorization": "Bearer mine"}


class Host:
    """Fails as often as it is asked; of it is known how long was paused before each further request."""

    def __init__(self, after: float | None = None) -> None:
        self.after = after
        self.asked = 0
        self.pauses: list[float] = []
        self.notices: list[str] = []

    def ask(self, *_: object, **__: object) -> Json:
        self.asked += 1
        raise TransientError("overloaded", self.after)

    def fails(self, monkeypatch: pytest.MonkeyPatch) -> Host:
        monkeypatch.setattr(http, "sleep", self.pauses.append)
        monkeypatch.setattr(http, "_authorized", self.ask)
        run = begun(Path.cwd())
        run.stream.listeners.append(lambda event: self.notices.append(event["message"]))
        with pytest.raises(TransientError, match="overloaded"):
            http.ask(run, Endpoint("host", "chat", "http://host.example", "m", 1), {})
        return self


def test_without_a_word_of_the_host_pauses_grow_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Host().fails(monkeypatch), Host().fails(monkeypatch)

    for host in (first, second):
        assert host.asked == 6
        assert len(host.pauses) == 5
        assert max(host.pauses) <= http.LONGEST_PAUSE
        assert host.pauses[-1] > host.pauses[0]
    # Who was refused together must not come back together.
    assert first.pauses != second.pauses


def test_a_pause_that_the_host_names_is_kept_and_each_one_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(after=7.0).fails(monkeypatch)

    assert host.asked == 6
    assert all(pause >= host.after for pause in host.pauses if host.after)
    assert host.notices == [f"overloaded Asking again in 7 s ({number} of 5)." for number in range(1, 6)]


def test_thinking_goes_back_as_it_came_to_its_own_model_only(follow: Follow) -> None:
    thought = Step(thinking="a deep thought", uses=(Use("bash", {"command": "true"}),))
    run, server, _ = follow(ANTHROPIC, thought, say("Done."), say("Other."))
    run.model = "model-two"
    turn.follow(run)

    same, other = server.requests[1]["messages"][1], server.requests[2]["messages"][1]
    assert same["content"][0] == {"type": "thinking", "thinking": "a deep thought", "signature": "c2lnbmVk"}
    assert "a deep thought" not in str(other)


def test_reasoning_goes_back_encrypted(follow: Follow) -> None:
    # Some models leave the arguments of a call empty, which no host takes back.
    uses = (Use("bash", {"command": "true"}), Use("bash", raw=""))
    _, server, _ = follow(RESPONSES, Step(thinking="a summary", text="Let me.", uses=uses), say("Done."))
    assert "c2VjcmV0" in [item.get("encrypted_content") for item in server.requests[1]["input"]]
    assert server.requests[0]["include"] == ["reasoning.encrypted_content"]


def test_the_phase_of_a_message_and_the_thoughts_of_an_open_model_go_back() -> None:
    said = {"type": "message", "phase": "commentary", "content": [{"text": "Let me."}]}
    thought = {"type": "reasoning", "summary": [], "content": [{"text": "hm"}]}
    for item, block in ((said, Text("Let me.")), (thought, Thinking("hm"))):
        answer = responses.answer({"output": [{"id": "x", **item}]})
        assert (answer.native, answer.blocks) == ([item], [block])


@pytest.mark.parametrize("wire", [ANTHROPIC, RESPONSES], ids=lambda wire: wire.name)
def test_an_edited_answer_is_told_as_it_was_edited(follow: Follow, wire: Wire) -> None:
    run, server, _ = follow(wire, Step(thinking="hm", redacted="c2VjcmV0", text="Before."), say("Done."))
    path = run.session.files()[1]
    path.write_text(path.read_text().replace("Before.", "After!!"))
    run.session.append("user", {}, "go on")

    turn.follow(run)

    assert "After!!" in str(server.requests[1])
    assert "c2VjcmV0" not in str(server.requests[1])


def test_a_session_changes_the_wire_in_the_middle(hs: Hs, serve: Serve) -> None:
    step = Step(thinking="hm", text="Let me.", uses=(Use("bash", {"command": "echo hello"}),))
    for wire, words in zip(WIRES, [(), ("--continue",), ("--continue",)], strict=True):
        server = serve(wire, step, say("Done."))
        answer = hs("--provider", wire.provider, "--model", "m", *words, "RUN it")
        assert answer.out == "Done.\n", answer.err
        assert ("hello" in str(server.requests[0])) is bool(words)

    assert len(bodies()) == 12


def test_ids_of_another_host_are_written_as_anthropic_takes_them(hs: Hs, serve: Serve) -> None:
    serve(CHAT, Step(uses=(Use("bash", {"command": "echo hello"}, id="functions.bash:0"),)), say("Done."))
    hs("go")
    second = serve(ANTHROPIC, say("Done."))

    assert hs("--continue", "--provider", "anthropic", "again").out == "Done.\n"

    assert "hello" in str(second.requests[0])
