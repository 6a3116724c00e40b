"""The image of the program that holds a pod's network open: made here, since no registry need be within reach.

It holds one file, a program of a few instructions that sleeps for ever, for whichever processor this machine has.
"""

import io
import platform
import tarfile
from struct import pack

PROGRAM = "/hold"
NAME = "localhost/fullrank-hold:1"
_BASE = 0x400000
_HEADERS = 64 + 56
_X86, _ARM = 62, 183

# Wait for a signal, again and again: `pause` on x86-64, `ppoll` of nothing on ARM.
_CODE = {
    "x86_64": (_X86, bytes.fromhex("b822000000 0f05 ebf7")),
    "aarch64": (_ARM, pack("<8I", 0xD2800928, *range(0xD2800000, 0xD2800005), 0xD4000001, 0x17FFFFF9)),
}


def can_be_made(machine: str = "") -> bool:
    return (machine or platform.machine()) in _CODE


def archive(machine: str = "") -> bytes:
    """The image's only layer, as `import` takes it."""
    program = executable(machine or platform.machine())
    entry = tarfile.TarInfo(PROGRAM.lstrip("/"))
    entry.mode, entry.size = 0o755, len(program)
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w") as tar:
        tar.addfile(entry, io.BytesIO(program))
    return text.getvalue()


def executable(machine: str) -> bytes:
    """An ELF file with one segment, headers included, that is loaded and run."""
    processor, code = _CODE[machine]
    size = _HEADERS + len(code)
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header = pack("<HHIQQQIHHHHHH", 2, processor, 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)
    return identity + header + segment + code
