"""Split a bash command into its simple commands, for permission rules.

Nothing is run or expanded: words that an expansion would produce are marked HIDDEN. The parser errs on the
side of finding too many commands. For example, it also reads the body of a here-document as commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from harness_lib.text import words_of

# Stands for text that only the shell knows. No command can contain this character.
HIDDEN = "\0"
_DEPTH = 6
_LONGEST = 100_000
_ENDS = frozenset(";&|\n()")
_PATTERN = frozenset("*?[{}")
# Words with pattern characters that are no patterns.
_LITERAL = frozenset(["[", "[[", "{", "}", "{}"])
_ASSIGNS = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")
_SHELLS = words_of("ash bash busybox csh dash fish ksh rbash sh tcsh zsh")
_PARAMETER = re.compile(r"[A-Za-z_]\w*|[\w@*#?$!-]")
# What may follow `<` or `>` in an operator; the - of `<&-` is a word.
_OPERATOR = re.compile(r"<[<-]?|[>|&]?")
_SUBSCRIPT = re.compile(r"\w\[")
# Variables and settings of git that name a program.
_PROGRAM = re.compile(r"\w*(?:ASKPASS|BROWSER|COMMAND|DIFF|EDITOR|LESSOPEN|PAGER|PS4|SSH|VISUAL)=")
_QUOTING = re.compile(r"[\\'\"]")
_VERSION = re.compile(r"[\d.-]+$")
# The innermost; and about as many words as these may become.
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MOST_BRACES = 100


_KEYWORDS = words_of("""
    ! { } [[ ]] case coproc do done elif else esac fi for function if in select then until while
""")

# Programs that run the commands in their arguments.
RUN_OTHERS = words_of("""
    ash bash busybox csh dash elvish fish ksh nu pwsh rbash sh tcsh toybox xonsh zsh
    . alias builtin command compgen complete coproc eval exec fc mapfile readarray source trap
    awk bun clojure deno elixir erl expect gawk gdb ghc groovy guile ipython irb java jshell julia kotlin
    lua luajit mawk nawk node nodejs ocaml octave osascript perl php pypy python pythonw r rscript ruby
    runghc runhaskell scala sed swift tclsh ts-node tsx wish
    ed emacs ex less man more mysql nano nvim psql sqlite vi vim
    bundle bunx claude codex hs nix-shell npx pipx pnpx uvx
    asdf at aws-vault batch bwrap caffeinate cgexec chamber chronic chroot chrt concurrently cpulimit crontab
    cross-env dbus-run-session direnv doas doppler dotenv dotenvx eatmydata entr env faketime fakeroot fd
    fdfind find firejail flock hyperfine infisical ionice limactl ltrace lxc mosh multipass nice nix nodemon
    nohup nsenter numactl nvm op parallel perf pkexec prlimit proot proxychains pyenv rbenv rlwrap rsync
    runuser scp screen script setarch setlock setpriv setsid sftp sg ssh ssh-agent stdbuf strace su sudo
    systemd-run tar taskset time timeout tmux torify torsocks tsocks unbuffer unshare vagrant valgrind watch
    watchexec winpty xargs xvfb-run
""")


# Programs whose first word is a verb, and the words and options by which some of them run what follows.
HAVE_VERBS = words_of("""
    apk apt apt-get aws az bazel brew cargo composer conda dart dnf docker docker-compose dotnet flutter
    flyctl gcloud gem gh git glab go harness hatch helm heroku hg jj kubectl launchctl mamba meson mise mix
    nerdctl npm pacman pdm pip pipenv pixi pnpm podman poetry rails rustup rye service snap svn systemctl
    terraform uv yarn yum zypper
""")
_RUN = words_of("""
    --exec --extcmd --index-filter --msg-filter --tree-filter -exec -toolexec -x dlx exec foreach run x
""")


@dataclass
class Simple:
    """A simple command, with the files that it is redirected from (`sources`) and to (`targets`).

    `plain` is False if it has a keyword, expansion, redirection or assignment beside its words.
    """

    words: list[str] = field(default_factory=list)
    plain: bool = True
    sources: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)

    @property
    def program(self) -> str:
        """The name of the program without its directory; contains HIDDEN if it is not known."""
        return self.words[0].rpartition("/")[2].casefold() if self.words else ""


def program_name(word: str) -> str:
    """Return the name of a program without its directory and version: "python" for /usr/bin/python3.11."""
    name = word.rpartition("/")[2].casefold()
    return _VERSION.sub("", name) or name


def written(text: str) -> list[Simple]:
    """Return the simple commands in `text`."""
    try:
        read = _Reader(text).read()
        if "<<" in text:
            # A quote in the body of a here-document is only a character there.
            read += [command for line in text.splitlines() for command in _Reader(line).read()]
    except RecursionError:
        return [Simple([HIDDEN], plain=False)]
    return [each for each in read if not each.plain or each.words or each.sources or each.targets]


def every(text: str, depth: int = 0) -> Iterator[Simple]:
    """Yield each simple command that `text` may run, also through shells, `env`, `sudo` and so on."""
    if depth > _DEPTH or len(text) > _LONGEST:
        yield Simple([HIDDEN], plain=False)
        return
    for command in written(text):
        words = _without_prefix(command.words)
        before = command.words[: len(command.words) - len(words)]
        values = [word.partition("=")[2] for word in before if _ASSIGNS.match(word)]
        yield replace(command, words=words, sources=[*command.sources, *values])
        yield from _given(words, depth)
        for value in _named_programs(before, words):
            yield from every(value, depth + 1)
        if words and program_name(words[0]) in {*_SHELLS, ".", "source"}:
            for source in command.sources:
                yield from every(source, depth + 1)


def _named_programs(before: list[str], words: list[str]) -> Iterator[str]:
    """Yield what bash or git runs although it stands in the place of no command."""
    yield from (word.partition("=")[2] for word in before if _PROGRAM.match(word))
    # Even in quotes: `test -v 'a[$(x)]'`.
    subscripts = (word[at.end() :] for word in words if (at := _SUBSCRIPT.search(word)))
    yield from (text for text in subscripts if "$(" in text or "`" in text)
    if words and program_name(words[0]) == "git":
        set_here = (word for option, word in pairwise(words) if option == "-c")
        yield from (word.partition("=")[2].removeprefix("!") for word in set_here)
        yield from (word[1:] for word in words if word.startswith("!"))


def _without_prefix(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and (words[at] in _KEYWORDS or _ASSIGNS.match(words[at])):
        # Behind these may stand a name.
        named = words[at] == "function" or (words[at] == "coproc" and words[at + 2 : at + 3] == ["{"])
        at += 2 if named else 1
    return words[at:]


def _given(words: list[str], depth: int) -> Iterator[Simple]:
    """Yield the commands that `words` give to a program that runs others."""
    if not words or (len(words) == 1 and not any(c in words[0] for c in " \t\n;&|")):
        if words and program_name(words[0]) in _SHELLS:
            # It reads commands from somewhere.
            yield Simple([HIDDEN], plain=False)
        return
    name = program_name(words[0])
    if any(c.isspace() for c in words[0]):
        yield from every(words[0], depth + 1)
    by_verb = name in HAVE_VERBS and _RUN & {word.partition("=")[0] for word in words}
    if name not in RUN_OTHERS and not by_verb:
        return
    if name in _SHELLS and all(word.startswith("-") for word in words[1:]):
        yield Simple([HIDDEN], plain=False)
    yield from _read_again(words)
    for at, word in enumerate(words[1:], 1):
        if by_verb and word == HIDDEN and words[at - 1] not in _RUN:
            # An argument of what is run.
            continue
        filled = word == "{}" and words[at - 1].startswith("-")
        yield Simple([HIDDEN] if filled else _without_prefix(words[at:]), plain=False)
        for part in values(word):
            if any(c.isspace() or c in ";&|(`$" for c in part) or f"={part}" in word:
                yield from every(part, depth + 1)


def _read_again(words: list[str]) -> Iterator[Simple]:
    """Yield what `eval` and its like may run, which read the quotes in `words` once more."""
    bare = [_QUOTING.sub("", word) for word in words]
    if bare != words:
        yield from (Simple(bare[at:], plain=False) for at in range(1, len(bare)))


def values(word: str) -> set[str]:
    """Return `word`, and what may be a value or a command in it: `--a=b`, `--a=b=c`, `-ab`, `+!a`."""
    attached = word[2:] if word.startswith("-") and not word.startswith("--") else ""
    return {word, *(word.rpartition(mark)[2] for mark in "=!"), word.partition("=")[2], attached} - {""}


def expanded(word: str) -> list[str]:
    """Return the words that the shell makes of the braces in `word`; HIDDEN for what is not `{a,b}`."""
    match = _BRACES.search(word)
    if word.count("{") * word.count(",") > _MOST_BRACES or not match:
        return [HIDDEN if match or ("{" in word and ".." in word) else word]
    texts = (f"{word[: match.start()]}{part}{word[match.end() :]}" for part in match[1].split(","))
    return [each for text in texts for each in expanded(text)]


class _Reader:
    """Parses commands from `at` to the end, or to an unmatched `closing` bracket."""

    def __init__(self, text: str, at: int = 0, closing: str = "") -> None:
        self._text = text
        self.at = at
        self._closing = closing
        self._open = 0
        self._command = Simple()
        self._read: list[Simple] = []
        # Those in expansions.
        self.nested: list[Simple] = []
        self._word: list[str] | None = None
        self._quoted = False
        self._patterns: frozenset[str] = frozenset()
        # The operator before the next word, where that is the name of a file.
        self._operator = ""

    def read(self) -> list[Simple]:
        """Parse and return the commands, those in expansions first."""
        while char := self._peek():
            if char == self._closing and not self._open:
                break
            self._step(char)
        self._end_command()
        return [*self.nested, *self._read]

    def _step(self, char: str) -> None:  # noqa: C901 (each character that means something)
        self.at += 1
        if char == "\\":
            self._quoted = True
            # At the end of the text it stands for itself.
            self._put(self._text[self.at : self.at + 1] or char)
            self.at += 1
        elif char == "'":
            self._quoted = True
            self._put(self._until("'"))
        elif char == '"':
            self._quoted = True
            self._double()
        elif char == "$":
            self._expand()
        elif char == "`":
            self._backticks()
        elif char in "<>":
            self._redirect(char)
        elif char == "&" and self._peek() == ">":
            self._end_word()
            self.at += 1
            self._redirect(">")
        elif char in _ENDS:
            self._open += {"(": 1, ")": -1}.get(char, 0)
            self._command.plain &= char not in "()"
            self._end_command()
        elif char in " \t":
            self._end_word()
        elif char == "#" and self._word is None:
            self._command.plain = False
            self._until("\n")
            self._end_command()
        else:
            self._put(char)
            self._patterns |= {char} & _PATTERN

    def _peek(self) -> str:
        """Return the next character, behind backslashes that join lines; "" at the end."""
        while self._text.startswith("\\\n", self.at):
            self.at += 2
        return self._text[self.at : self.at + 1]

    def _put(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def _until(self, end: str) -> str:
        at = self._text.find(end, self.at)
        if at < 0:
            at = len(self._text)
            if end != "\n":
                self._unfinished()
        text, self.at = self._text[self.at : at], at + 1
        return text

    def _unfinished(self) -> None:
        """Note an unterminated quote: bash may parse the command differently."""
        self.nested.append(Simple([HIDDEN], plain=False))
        self._command.plain = False

    def _double(self) -> None:
        self._put("")
        while char := self._peek():
            self.at += 1
            if char == '"':
                return
            if char == "\\" and (escaped := self._text[self.at : self.at + 1]) in {'"', "$", "`", "\\"}:
                self._put(escaped)
                self.at += 1
            elif char == "$":
                self._expand(quoted=True)
            elif char == "`":
                self._backticks()
            else:
                self._put(char)
        self._unfinished()

    def _expand(self, *, quoted: bool = False) -> None:
        """Parse the expansion behind a `$`."""
        following = self._peek()
        if following in {"(", "{"}:
            inner = _Reader(self._text, self.at + 1, {"(": ")", "{": "}"}[following])
            commands = inner.read()
            read = [word for each in commands for word in each.words]
            # A bracket of `case` may have closed it too early, and @P expands what a variable holds.
            is_cut = quoted and read.count("case") > read.count("esac")
            if inner.at >= len(self._text) or is_cut or self._text.endswith("@P", 0, inner.at):
                self._unfinished()
            self.at = inner.at + 1
            self._hide(commands if following == "(" else inner.nested)
        elif following == '"' and not quoted:
            # Translated, it may be another text.
            self.at += 1
            self._quoted, self._command.plain = True, False
            self._double()
        elif following == "'" and not quoted:
            # $'…' has escapes of its own.
            self.at += 1
            start = self.at
            while (text := self._until("'")).endswith("\\") and not text.endswith("\\\\"):
                pass
            self._hide([]) if "\\" in self._text[start : self.at] else self._put(text)
        elif match := _PARAMETER.match(self._text, self.at):
            self.at = match.end()
            self._hide([])
        else:
            self._put("$")

    def _backticks(self) -> None:
        text = self._until("`")
        while text.endswith("\\"):
            # A further pair in it.
            text = f"{text[:-1]}`{self._until('`')}"
        self._hide(written(re.sub(r"\\([\\$])", r"\1", text)))

    def _hide(self, commands: list[Simple]) -> None:
        """Put HIDDEN in place of an expansion, and keep the `commands` in it."""
        self._command.plain = False
        self._put(HIDDEN)
        self.nested += commands

    def _redirect(self, char: str) -> None:
        if self._word is not None and "".join(self._word).isdigit():
            self._word = None
        self._end_word()
        if self._peek() == "(":
            # <(…) and >(…) are commands; the bracket begins them.
            self._hide([])
            return
        match = _OPERATOR.match(self._text, self.at)
        self._operator = char + (match[0] if match else "")
        self.at += len(self._operator) - 1
        self._command.plain &= not self._operator.startswith("<<")

    def _end_word(self) -> None:
        if self._word is None:
            return
        word, self._word = "".join(self._word), None
        operator, self._operator = self._operator, ""
        patterns, self._patterns = self._patterns, frozenset()
        first, quoted, self._quoted = not (self._command.words or operator), self._quoted, False
        words = [word]
        if "{" in patterns and ("," in word or ".." in word):
            words = [each for each in expanded(word) if each]
            patterns -= {*"{}"}
            self._command.plain = False
        if patterns and first and word not in _LITERAL:
            # A pattern in the place of a program may become any.
            words = [HIDDEN]
        if not operator:
            special = first and not quoted and (word in _KEYWORDS or _ASSIGNS.match(word))
            self._command.plain &= HIDDEN not in "".join(words) and not special
            self._command.words += words
        elif not (word == "/dev/null" or (operator.endswith("&") and not word.strip("0123456789-"))):
            self._command.plain = False
            (self._command.targets if ">" in operator else self._command.sources).extend(words)

    def _end_command(self) -> None:
        self._end_word()
        self._operator = ""
        self._read.append(self._command)
        self._command = Simple()
