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
_SHELLS = frozenset(("", "sh", "bash", "shell", "zsh", "console", "powershell"))
_NO_FAILURE = re.compile(r"\b(?:0|no|zero)\s+(?:failed|fail(?:ure)?s?|errors?|warnings?)\b", re.IGNORECASE)
_PASSES = re.compile(
    r"通过|通過|成功|\b(?:pass(?:es|ed|ing)?|green|ok|succe(?:ss(?:ful(?:ly)?)?|eds?)|builds?|compiles?|clean|exits?\W+(?:code\W+)?0)\b",
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"失败|失敗|\b(?:fail\w*|errors?|red|exits?\W+(?:code\W+)?[1-9]|not (?:defined|found))\b", re.IGNORECASE
)
# A pipe hides the exit code of the command, and a placeholder is for somebody to fill in.
_SHORTENED = re.compile(r"\s*(?:2>&1\s*)?\|\s*(?:tail|head)\b[^|;&\n]*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"<[a-z][\w -]*>|\{[a-z_]+\}")
_GIT = re.compile(r"git\s+(?:add|commit|push)\b")

_PROGRAM = re.compile(
    r"""(?x) actionlint | ansible | ant | bash | bats | bazel | buck | bun | bundle | busybox | cabal |
    cargo | cmake | composer | crystal | ctest | curl | dart | deno | diff | docker | dotnet | elixir |
    eslint | flake8 | flutter | ghc | go | golangci-lint | gradlew? | grep | hadolint | helm | java |
    jest | jq | julia | just | lein | lua | make | meson | mix | mkdocs | mocha | mvnw? | mypy | nim |
    ninja | node | nox | npm | npx | nx | opam | perl | phpunit | php | pip | playwright | pnpm |
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
    r"(?<!\S)(?:pass|passes|should|returns?|the|all|are|is|must|shows?|without|that|correctly|works?|generates"
    r"|produces|creates|contains|outputs|prints|exists|compiles|renders|reports)(?![\w-])"
    r"|[.…]\s*$"
)
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_SAID = re.compile(
    r"\s+(?:(?:passes|succeeds|exits? (?:with )?(?:code )?0|returns? 0|is (?:clean|green))\b.*|pass\.?\s*\Z)",
    re.IGNORECASE | re.DOTALL,
)
_SPAN = re.compile(r"`([^`\n]+)`")
_BEFORE = re.compile(r"(?:verif\w+|check|confirm|test|pass\w*|succeed\w*|green)\b[^.`]{0,40}$", re.IGNORECASE)
_AFTER = re.compile(r"[;,]?[^.;`]{0,40}")
_CALL = re.compile(r"[a-z][\w-]*(?: [\w./:=-]+)* --?\w[^`]*")
_FIELD = re.compile(
    r"^\s*[-*]\s+\**(?:check|verify|validate|validation)\**:\**[ \t]*(.+)$", re.MULTILINE | re.IGNORECASE
)


def expected_to_pass(tokens: Sequence[Token]) -> str | None:
    """Return the last command in `tokens` that is expected to pass (`Run: …`, `Expected: PASS`)."""
    check = command = None
    for token in tokens:
        if token.type == "fence" and token.info.split(" ")[0].lower() in _SHELLS:
            command = typed(token.content)
        elif token.type == "inline":
            for paragraph in re.split(rf"\n(?={_EXPECT})", token.content):
                if expected := _EXPECTED.match(paragraph):
                    check = command if command and is_pass(expected["what"]) else check
                    command = None
                elif named := [run["command"] for run in map(_RUN.match, paragraph.split("\n")) if run]:
                    command = typed(named[-1] or "")
    return check


def is_pass(expected: str) -> bool:
    """Return whether the words `expected` mean that a command passes."""
    said = _NO_FAILURE.sub("passes", expected)
    return _PASSES.search(said) is not None and _FAILS.search(said) is None


def in_prose(text: str) -> str | None:
    """Return the last command in backticks that a sentence of `text` asks to verify, or says to pass."""
    found = None
    for span in _SPAN.finditer(text):
        after = _AFTER.match(text, span.end())
        said = after[0] if after else ""
        is_asked = _BEFORE.search(text[max(0, span.start() - 60) : span.start()]) is not None
        passes = is_pass(said) or (is_asked and _FAILS.search(_NO_FAILURE.sub("", said)) is None)
        if passes and (looks_like_one(span[1]) or (is_asked and _CALL.fullmatch(span[1]))):
            found = typed(span[1]) or found
    for field in _FIELD.finditer(text):
        found = whole(field[1]) or found
    return found


def whole(text: str) -> str | None:
    """Return the command that all of `text` is, without "passes" behind it; None if it is a sentence."""
    spans = _SPAN.findall(text)
    bare = text.strip()
    if (said := _SAID.search(bare)) and not _is_inside_quotes(bare[: said.start()]):
        bare = bare[: said.start()].strip()
    if bare.startswith("```"):
        return typed(re.sub(r"^```\w*\n|\n?```$", "", bare))
    if len(spans) == 1 and bare == f"`{spans[0]}`":
        bare = spans[0]
    return typed(bare) if looks_like_one(bare) else in_prose(re.sub(_FIELD, "", text))


def _is_inside_quotes(text: str) -> bool:
    return re.search(r"[\"']", _QUOTED.sub("", text)) is not None


def automated(texts: Sequence[str]) -> str | None:
    """Return one command for all of `texts`, which are said to be commands."""
    found = [check for text in texts if (check := whole(text) or _unknown(text))]
    if len(found) < 2:  # noqa: PLR2004 (nothing to join)
        return found[0] if found else None
    return "\n".join(["set -e", *(check.removeprefix("set -e\n") for check in found)])


def _unknown(text: str) -> str | None:
    """Return `text` if it is the call of a program that is not known here."""
    is_call = re.match(r"[a-z./(]\S* ", text) and re.search(r"\s-{1,2}\w|/|&&", text) and "`" not in text
    return typed(text) if is_call and not _PROSE.search(_QUOTED.sub("", text)) else None


def looks_like_one(text: str) -> bool:
    """Return whether `text` is a command rather than a word or a sentence."""
    first = _FIRST.match(text.strip())
    if first is None or _PROSE.search(_QUOTED.sub("", text)):
        return False
    program = first["program"]
    is_path = "/" in program and not program.endswith("/") and bool(re.fullmatch(r"[\w./~$-]+", program))
    is_file = is_path and re.search(r"\.(?!sh\b|py\b|js\b|mjs\b|rb\b|pl\b)\w+$", program) is not None
    return _PROGRAM.fullmatch(program.rpartition("/")[2]) is not None or (is_path and not is_file)


def typed(command: str) -> str | None:
    """Return `command` for a shell that stops at the first failure; None if it is for the user or git."""
    lines = [line.removeprefix("$ ").rstrip() for line in _SHORTENED.sub("", command).strip().splitlines()]
    lines = [line for line in lines if line and not line.lstrip().startswith("#")]
    text = "\n".join(lines)
    if not text or _PLACEHOLDER.search(text) or _GIT.search(text):
        return None
    return text if len(lines) == 1 or text.endswith("\\") else f"set -e\n{text}"
