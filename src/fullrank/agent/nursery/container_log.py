"""What a container writes, line by line with its time, in the format that container runtimes keep for kubelets."""

import os
import time
from contextlib import suppress

LONGEST = 16 * 1024
LARGEST = 64 << 20


class ContainerLog:
    """`2026-11-15T05:11:00.123456789Z stdout F text`; a line in several pieces has P in all but its last.

    A file that has grown large is put aside as `PATH.1`, the next one as `PATH.2`; nothing is thrown away.
    """

    def __init__(self, path: str, largest: int = LARGEST) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._path = path
        self._largest = largest
        self._begun = {"stdout": b"", "stderr": b""}
        self._lost = 0
        self._open()

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size

    def take(self, stream: str, text: bytes) -> None:
        """Writes every whole line there now is; the rest waits for its end."""
        *lines, rest = (self._begun[stream] + text).split(b"\n")
        written = [piece for line in lines for piece in self._pieces(stream, line)]
        while len(rest) >= LONGEST:
            written.append(_entry(stream, b"P", rest[:LONGEST]))
            rest = rest[LONGEST:]
        self._begun[stream] = rest
        if written:
            self._write(b"".join(written))

    def finish(self) -> None:
        """Writes lines that never ended."""
        for stream, rest in self._begun.items():
            if rest:
                self._write(_entry(stream, b"P", rest))

    def close(self) -> None:
        if self._lost:
            self._write(b"")
        os.close(self._file)

    def _pieces(self, stream: str, line: bytes) -> list[bytes]:
        cuts = range(0, max(len(line), 1), LONGEST)
        return [
            _entry(stream, b"F" if cut + LONGEST >= len(line) else b"P", line[cut : cut + LONGEST])
            for cut in cuts
        ]

    def _write(self, entries: bytes) -> None:
        """A full disk must not stop a training: what is not written is counted, and told when there is room again."""
        if self._lost:
            told = f"fullrank: {self._lost} bytes of this log were lost: the disk was full".encode()
            entries = _entry("stderr", b"F", told) + entries
        left = entries
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            self._lost += len(left)
        else:
            self._lost = 0
            self._size += len(entries)
            if self._size >= self._largest:
                self._put_aside()

    def _put_aside(self) -> None:
        number = 1
        while os.path.exists(f"{self._path}.{number}"):
            number += 1
        try:
            os.rename(self._path, f"{self._path}.{number}")
        except OSError:
            return  # then it grows a little more
        os.close(self._file)
        self._open()


def kept_bytes(path: str) -> dict[str, int]:
    """How much of what a container wrote to each stream is in its log."""
    found = {"stdout": 0, "stderr": 0}
    number, pieces = 1, [path]
    while os.path.exists(f"{path}.{number}"):
        pieces.append(f"{path}.{number}")
        number += 1
    for piece in pieces:
        with suppress(FileNotFoundError), open(piece, "rb") as file:
            for line in file:
                _, stream, tag, text = line.split(b" ", 3)
                found[stream.decode()] += len(text) - (tag == b"P")
    return found


def _entry(stream: str, tag: bytes, text: bytes) -> bytes:
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return b"%s.%09dZ %s %s %s\n" % (moment.encode(), nanoseconds, stream.encode(), tag, text)
