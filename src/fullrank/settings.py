"""One frozen Settings, parsed once at the edge: flags, then FULLRANK_* variables, then fullrank.toml, then defaults."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from fullrank.errors import Cause, Invalid


@dataclass(frozen=True, slots=True)
class Settings:
    """What an embedded home is started with."""

    home: Path
    listen: str = "127.0.0.1"  # the address the API and the Job Center listen on
    port: int = 7443  # its port; another one when taken, any free one when 0
    ui_port: int = 7480  # likewise, the Job Center's
    cpu_overcommit: float = 10.0  # cores may be asked for this many times over; 1 is strict
    gpus: str = "auto"  # what is found; "none": hidden; "fake:N": so many pretended ones
    images: str = "lenient"  # "strict": an image the catalogue does not know cannot be pulled
    runtime: str = "auto"  # what runs pods: processes, or the containers of "podman" or "docker"
    log_retention: str = "30d"  # how long logs outlive their deleted job; "forever": until they are pruned


def default_home(environment: Mapping[str, str]) -> Path:
    if home := environment.get("FULLRANK_HOME"):
        return Path(home).absolute()
    if state := environment.get("XDG_STATE_HOME"):
        return Path(state) / "fullrank"
    return Path(environment.get("HOME", "/")) / ".local" / "state" / "fullrank"


def read_settings(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """The settings, or Invalid with every complaint at once, each naming where the value came from."""
    home = Path(flags.get("home") or default_home(environment))
    complaints: list[Cause] = []
    written, file = _from_file(home, complaints)
    chosen: dict[str, Any] = {}
    for name, read in READERS.items():
        for source, value in (
            (f"--{name.replace('_', '-')}", flags.get(name)),
            (f"FULLRANK_{name.upper()}", environment.get(f"FULLRANK_{name.upper()}")),
            (f"{file}: {name}", written.get(name)),
        ):
            if value is not None:
                try:
                    chosen[name] = read(value)
                except ValueError as error:
                    complaints.append(Cause(source, f'Invalid value: "{value}": {error}'))
                break
    if complaints:
        raise Invalid("Settings", complaints)
    return Settings(home=home, **chosen)


def _from_file(home: Path, complaints: list[Cause]) -> tuple[Mapping[str, Any], Path]:
    file = home / "fullrank.toml"
    if not file.exists():
        return {}, file
    try:
        written = tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        complaints.append(Cause(str(file), f"Invalid value: not TOML: {error}"))
        return {}, file
    complaints += [
        Cause(f"{file}: {name}", f"Unsupported value: the settings are {', '.join(READERS)}")
        for name in written
        if name not in READERS
    ]
    return written, file


def _address(value: Any) -> str:
    return str(ip_address(str(value)))


def _port(value: Any) -> int:
    if not 0 <= (port := int(value)) <= 65535:
        raise ValueError("a port is between 0 and 65535")
    return port


def _factor(value: Any) -> float:
    if (factor := float(value)) < 1:
        raise ValueError("must be 1 (strict) or more")
    return factor


def _images(value: Any) -> str:
    if value not in ("lenient", "strict"):
        raise ValueError('must be "lenient" or "strict"')
    return str(value)


def duration(text: str) -> timedelta:
    """`90s`, `30m`, `12h`, `7d`."""
    number, unit = text[:-1], text[-1:]
    if unit not in UNITS or not number.isdecimal():
        raise ValueError("must be a number with s, m, h or d, such as 12h or 30d")
    return timedelta(**{UNITS[unit]: int(number)})


UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _retention(value: Any) -> str:
    if value != "forever":
        duration(str(value))
    return str(value)


def _runtime(value: Any) -> str:
    if value not in ("auto", "process", "podman", "docker"):
        raise ValueError('must be "auto", "process", "podman" or "docker"')
    return str(value)


def _gpus(value: Any) -> str:
    kind, _, count = str(value).partition(":")
    if str(value) not in ("auto", "none") and not (
        kind == "fake" and count.isdecimal() and int(count) <= 1024
    ):
        raise ValueError('must be "auto", "none" or "fake:N" with N up to 1024')
    return str(value)


READERS: Mapping[str, Callable[[Any], Any]] = {
    "listen": _address,
    "port": _port,
    "ui_port": _port,
    "cpu_overcommit": _factor,
    "gpus": _gpus,
    "images": _images,
    "runtime": _runtime,
    "log_retention": _retention,
}
assert {"home", *READERS} == {field.name for field in fields(Settings)}
