"""The line between a machine and its database: it can be cut, silenced, or lose one answer."""

from __future__ import annotations

import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

PORT = ".s.PGSQL.5432"
# These have no answer: the end of a connection, and what the driver sends behind the last of a pipeline.
GOODBYE, FLUSH = b"X\0\0\0\4", b"H\0\0\0\4"


class Line:
    """Carry bytes from a socket of its own to the server at `url`; `url` is its own address.

    `cut`: nobody gets through, and who was is cut off. `silent`: it accepts, and nothing comes back.
    `trips`: how often a machine has asked after an answer.
    `lose`: "before" the server gets the next COMMIT, or "after" it has done it, the connection is cut; with
    `then_cut` for good.
    """

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        host, port = str(parts["host"]), int(parts.get("port") or 5432)
        self._family = socket.AF_UNIX if host.startswith("/") else socket.AF_INET
        self._server = f"{host}/.s.PGSQL.{port}" if self._family == socket.AF_UNIX else (host, port)
        self.directory = Path(tempfile.mkdtemp(prefix="line-"))
        self.url = url.partition("?")[0] + f"?host={self.directory}&port=5432"
        self.silent = False
        self.lose = ""
        self.then_cut = False
        self.lost = 0
        self.trips = 0
        self._asking: set[socket.socket] = set()
        self._swallows = False
        self._open: list[socket.socket] = []
        self._door: socket.socket | None = None
        self.mend()

    def hush(self) -> None:
        """Accept whoever comes, and answer nothing, also to those who came before."""
        self.silent = True

    def cut(self) -> None:
        """Let nobody through any more."""
        assert self._door is not None
        (self.directory / PORT).unlink()
        self._door.close()
        self._drop()

    def close(self) -> None:
        """End it for good."""
        with suppress(OSError):
            self.cut()
        self.directory.rmdir()

    def mend(self) -> None:
        """Let everybody through again."""
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(self.directory / PORT))
        self._door.listen(32)
        threading.Thread(target=self._accept, args=(self._door,), daemon=True).start()

    def _accept(self, door: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = door.accept()
                server = socket.socket(self._family)
                self._open += [client, server]
                if not self.silent:
                    server.connect(self._server)
                    for one, other, asks in ((client, server, True), (server, client, False)):
                        threading.Thread(target=self._carry, args=(one, other, asks), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket, asks: bool) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                if not asks:
                    self._asking.discard(other)
                # This thread may come late with the last words, when all is answered.
                elif data not in (GOODBYE, FLUSH) and one not in self._asking:
                    self.trips += 1
                    self._asking.add(one)
                is_commit = asks and self.lose and b"commit\0" in data
                if is_commit:
                    self._swallows, self.lose = self.lose == "after", ""
                if self.silent:
                    continue
                if (is_commit and not self._swallows) or (not asks and self._swallows):
                    # Before the server hears of it, or once it has answered.
                    self._swallows = False
                    self.lost += 1
                    if self.then_cut:
                        self.cut()
                    self._drop()
                    return
                other.sendall(data)
        self._close(one, other)

    def _drop(self) -> None:
        self._close(*self._open)
        self._open = []

    @staticmethod
    def _close(*ends: socket.socket) -> None:
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
