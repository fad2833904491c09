"""A check that is a command for the shell: exit code 0 exactly when the task is done.

The code that runs a command is loaded only when a check runs: hooks read lists and run no check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib import sha256
from harness_lib.checks import Command

if TYPE_CHECKING:
    from pathlib import Path

    from harness_lib.checks import Checked, Worktree


class ShellCheck(Command):
    """A check that runs a command."""

    __slots__ = ()

    @property
    def is_given(self) -> bool:
        """Whether there is a command that is not blank."""
        return self.text is not None and bool(self.text.strip())

    def fingerprint(self) -> str:
        """Return `sha256:…` of the command and its directory."""
        # Neither may contain NUL. A lone surrogate, which JSON can carry, has no UTF-8 of its own.
        text = f"{self.text or ''}\0{self.cwd or ''}"
        return f"sha256:{sha256.digest(text.encode('utf-8', 'surrogatepass'))}"

    def commands(self) -> tuple[tuple[str | None, str | None], ...]:
        """Return the command and its directory as written, even if empty."""
        return ((self.text, self.cwd),)

    def require_place(self, top: Path) -> None:
        """Raise ConfigError if its directory is not in the work tree at `top`."""
        from harness_lib.checks import shell_run  # noqa: PLC0415 (hooks)

        shell_run.directory(self, top)

    def run(self, worktree: Worktree) -> Checked:
        """Run the command. Raises ConfigError if its directory is not in the work tree."""
        from harness_lib.checks import shell_run  # noqa: PLC0415 (hooks)

        return shell_run.run(self, worktree)
