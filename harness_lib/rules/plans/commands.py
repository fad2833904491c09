"""Find the command in the text of a plan that is said to pass."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token

_RUN = re.compile(
    r"\W*(?:Run|Verify|Command|Ejecutar|Executar|Ausführen|Запустить|运行|執行|执行|命令)\b[^:\uff1a`]*[:\uff1a]"
    r"[\s*_]*(?:`(?P<command>[^`]+)`)?"
)
_EXPECT = r"\W*(?:Expected|Esperado|Attendu|Erwartet|Ожидается|预期|預期|期望)"
_EXPECTED = re.compile(rf"{_EXPECT}[^:\uff1a]*[:\uff1a][\s*_]*(?P<what>.*)", re.DOTALL)
_STEP = re.compile(r"\[[ xX]\]|\W*(?:Step|步骤)\b")
# What is to be done if it fails.
_IF = re.compile(
    r"(?:[.;。\uff1b(\uff08]|\s[\u2014\u2013-])\s*(?:If|When|Unless)\b.*|失敗があ.*|如果.*", re.DOTALL
)
_SHELLS = frozenset(("", "sh", "bash", "shell", "zsh", "console", "powershell"))
_NO_FAILURE = re.compile(
    r"\b(?:0|any|no|zero)\s+(?:(?!such)[\w-]+\s+){0,2}?"
    r"(?:failed|fail(?:ure)?s?|errors?|warnings?|violations?)\b"
    r"|无.{0,8}错误",
    re.IGNORECASE,
)
_PASSES = re.compile(
    r"通过|通過|成功|全绿|\b(?:verde|pass(?:es|ed|ing)?|green|ok|succe(?:ss(?:ful(?:ly)?)?|eds?)|builds?|compiles?|clean|exits?\W+(?:code\W+)?0)\b",
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"失败|失敗|\b(?:fail\w*|errors?|red|exits?\W+(?:code\W+)?[1-9]|not (?:defined|found))\b", re.IGNORECASE
)
# A pipe hides the exit code of the command, and a placeholder is for somebody to fill in.
_SHORTENED = re.compile(r"\s*(?:2>&1\s*)?\|\s*(?:tail|head)\b[^|;&\n]*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"<[a-z][\w -]*>|\{[a-z_]+\}")
_GIT = re.compile(r"git\s+(?:add|commit|log|push|status)\b")
# These never end.
_SERVER = re.compile(
    r"(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:dev|preview|serve|start|watch)(?![\w:-])"
    r"|docker[ -]compose\s+up(?!.*\s-d\b)"
)

_PROGRAM = re.compile(
    r"""(?x) actionlint | ansible | ant | bash | bats | bazel | buck | bun | bundle | busybox | cabal |
    cargo | cmake | composer | crystal | ctest | curl | dart | deno | diff | docker | dotnet | elixir |
    eslint | flake8 | flutter | ghc | go | golangci-lint | gradlew? | grep | hadolint | helm | java |
    jest | jq | julia | just | lein | lua | make | meson | mix | mkdocs | mocha | mvnw? | mypy | nim |
    ninja | node | nox | npm | npx | nx | opam | openspec | perl | phpunit | php | pip | playwright | pnpm |
    podman | poetry | pre-commit | prettier | prove | psql | pyright | pytest | python3? | rails |
    rake | rg | Rscript | rspec | rubocop | ruby | ruff | rustc | sbt | sh | shellcheck | sqlite3 |
    stack | swift | task | terraform | test | tox | tsc | turbo | uvx? | vitest | xcodebuild |
    yamllint | yarn | zig | \[\[? | !"""
)
_FIRST = re.compile(
    r"(?:[A-Z_][A-Z0-9_]*=\S*\s+|(?:sudo|env|time|timeout \d+\w*|cd \S+ &&|\()\s*)*(?P<program>\S+)"
)
# Words of a sentence about a command, outside of quotes.
_PROSE = re.compile(
    r"(?<!\S)(?:can|will|pass|passes|should|returns?|the|all|are|is|must|shows?|without|that|correctly|works?|generates"
    r"|produces|creates|contains|outputs|prints|exists|compiles|renders|reports)(?![\w-])"
    r"|(?<=\w)[.…]\s*$"
)
# A path that is called, rather than one that is spoken of, or a route of a server.
_CALLED = re.compile(
    r"(?:\.{0,2}/|~/|\$)?(?:[\w.$-]+/)*[\w.-]+\.(?:sh|py|js|mjs|rb|pl)|(?:\.{1,2}/|~/|\$)[\w./$-]*\w"
    r"|(?:\.?venv|bin|ci|node_modules|scripts?|tools|vendor|/bin|/opt|/usr)/[\w./-]*\w"
)
# Words of a sentence, where nothing stands behind them.
_PROGRAMS = "! [ [[ bash cargo diff docker go grep node perl php python python3 ruby sh stack task test"
_WORDS = frozenset(_PROGRAMS.split())
_BARE_PATH = re.compile(r"\w[\w-]*(?:/[\w.-]+)+")
_TEST_FILE = re.compile(r"(?:\S*/)?(?:test_\S*|\S*[._-](?:test|spec))\.\w+")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_SAID = re.compile(
    r"\s+(?:(?:passes|succeeds|exits? (?:with )?(?:code )?0|returns? 0|is (?:clean|green))\b.*|pass\.?\s*\Z)",
    re.IGNORECASE | re.DOTALL,
)
_SPAN = re.compile(r"`([^`\n]+)`")
_BEFORE = re.compile(
    r"(?:verif\w+|check|confirm|test|pass\w*|succeed\w*|green)\b(?:(?!\n\s*(?:[-*+]|\d+[.)])\s)[^.`]){0,40}$",
    re.IGNORECASE,
)
_AFTER = re.compile(r"[;,]?[^.;`]{0,40}")
_TO_VERIFY = re.compile(r"\W{0,3}to (?:confirm|ensure|validate|verify)\b", re.IGNORECASE)
_RUN_ONE = re.compile(
    r"\W*(?:(?:execute|re-?run|run)\s+)?`(?P<command>[^`\n]+)`(?P<rest>[^`]*)", re.IGNORECASE | re.DOTALL
)
_BY_HAND = re.compile(r"\b(?:by hand|manual\w*|visual\w*)\b", re.IGNORECASE)
# A whole line in which `set -e` passes over what fails before `&&`.
_CHAIN = re.compile(
    r"(?!\s*(?:case|elif|for|if|until|while)\b)[^#]+ && [^#]*[^#\s\\&|({;](?<!\bdo)(?<!\bthen)"
)
_CALL = re.compile(r"[a-z][\w-]*(?: [\w./:=-]+)* --?\w[^`]*")
_FIELD = re.compile(
    r"^\s*[-*]\s+\**(?:check|verify|validate|validation)\**:\**[ \t]*(.+)$", re.MULTILINE | re.IGNORECASE
)


def expected_to_pass(tokens: Sequence[Token]) -> str | None:
    """Return the commands in the last step of `tokens` with one that is expected to pass.

    That is said by `Run: …` and `Expected: PASS`.
    """
    command = None
    step: list[str] = []
    passing = step
    for token in tokens:
        if token.type == "inline" and _STEP.match(token.content):
            step = []
        if token.type == "fence" and token.info.split(" ")[0].lower() in _SHELLS:
            command = typed(token.content)
        elif token.type == "inline":
            for paragraph in re.split(rf"\n(?={_EXPECT})", token.content):
                if expected := _EXPECTED.match(paragraph):
                    if command and is_pass(expected["what"]):
                        step.append(command)
                        passing = step
                    command = None
                elif named := [run["command"] for run in map(_RUN.match, paragraph.split("\n")) if run]:
                    command = typed(named[-1] or "")
    return joined(list(dict.fromkeys(passing)))


def is_pass(expected: str) -> bool:
    """Return whether the words `expected` mean that a command passes."""
    said = _NO_FAILURE.sub("passes", _IF.sub("", expected))
    return _PASSES.search(said) is not None and not _FAILS.search(said)


def in_prose(text: str) -> str | None:
    """Return the last command in backticks that a sentence of `text` asks to verify, or says to pass."""
    found = None
    for span in _SPAN.finditer(text):
        after = _AFTER.match(text, span.end())
        said = after[0] if after else ""
        is_asked = _BEFORE.search(text[max(0, span.start() - 60) : span.start()]) is not None
        is_asked = is_asked or _TO_VERIFY.match(said) is not None
        passes = is_pass(said) or (is_asked and not _FAILS.search(_NO_FAILURE.sub("", said)))
        is_word = span[1].strip() in _WORDS or _TEST_FILE.fullmatch(span[1]) is not None
        # A file or a route that is spoken of, unless it is said to pass.
        is_word = is_word or (_BARE_PATH.fullmatch(span[1]) is not None and not is_pass(said))
        if passes and not is_word and (looks_like_one(span[1]) or (is_asked and _CALL.fullmatch(span[1]))):
            found = typed(span[1]) or found
    for field in _FIELD.finditer(text):
        found = whole(field[1]) or found
    return found


def only(text: str) -> str | None:
    """Return the command that a step consists of, perhaps with words behind it: "Run `npm test`"."""
    step = _RUN_ONE.fullmatch(text)
    if not step or _FAILS.search(_NO_FAILURE.sub("", step["rest"])) or _BY_HAND.search(text):
        return None
    command = step["command"].strip()
    return typed(command) if command not in _WORDS and looks_like_one(command) else None


def whole(text: str) -> str | None:
    """Return the command that all of `text` is, without "passes" behind it; None if it is a sentence."""
    spans = _SPAN.findall(text)
    bare = text.strip()
    # A quote that is still open there holds those words.
    if (said := _SAID.search(bare)) and not re.search("[\"']", _QUOTED.sub("", bare[: said.start()])):
        bare = bare[: said.start()].strip()
    if bare.startswith("```"):
        return typed(re.sub(r"^```\w*\n|\n?```$", "", bare))
    if len(spans) == 1 and bare == f"`{spans[0]}`":
        bare = spans[0]
    return typed(bare) if looks_like_one(bare) else in_prose(re.sub(_FIELD, "", text))


def automated(texts: Sequence[str]) -> str | None:
    """Return one command for all of `texts`, which are said to be commands."""
    return joined([check for text in texts if (check := whole(text) or _unknown(text))])


def joined(found: Sequence[str]) -> str | None:
    """Return one command for all of `found`, of which each begins in the same directory."""
    if len(found) < 2:  # noqa: PLR2004 (nothing to join)
        return found[0] if found else None
    # `set -e` alone passes over a failed `&&`.
    return "\n".join(["set -e", *(f"(\n{check}\n)" for check in found)])


def _unknown(text: str) -> str | None:
    """Return `text` if it is the call of a program that is not known here."""
    is_call = re.match(r"[a-z./(]\S* ", text) and re.search(r"\s-{1,2}\w|/|&&", text) and "`" not in text
    return typed(text) if is_call and not _PROSE.search(_QUOTED.sub("", text)) else None


def looks_like_one(text: str) -> bool:
    """Return whether `text` is a command rather than a word or a sentence."""
    first = _FIRST.match(text.strip())
    if not first or _PROSE.search(_QUOTED.sub("", text)):
        return False
    program = first["program"]
    is_path = "/" in program and _CALLED.fullmatch(program) is not None
    is_file = is_path and re.search(r"\.(?!sh\b|py\b|js\b|mjs\b|rb\b|pl\b)\w+$", program) is not None
    return _PROGRAM.fullmatch(program.rpartition("/")[2]) is not None or (is_path and not is_file)


def typed(command: str) -> str | None:
    """Return `command` for a shell that stops at the first failure; None if it is for the user or git."""
    lines = [line.removeprefix("$ ").rstrip() for line in _SHORTENED.sub("", command).strip().splitlines()]
    lines = [line for line in lines if line and not line.lstrip().startswith("#")]
    text = "\n".join(lines)
    if all(line.startswith("git ") for line in lines):
        # The commit is for harness, and what it shows is no check.
        return None
    if not text or _PLACEHOLDER.search(text) or _GIT.search(text) or _SERVER.match(text):
        return None
    if len(lines) == 1 or text.endswith("\\"):
        return text
    return "\n".join(["set -e", *(f"{line} || exit" if _CHAIN.fullmatch(line) else line for line in lines)])
