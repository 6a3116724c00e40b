"""Where packages come from is what pip has been told: its configuration files and PIP_* variables, in uv's words.

The words travel as environment variables, never as arguments: an index address may hold a password, and everybody can
see a process's arguments.
"""

import configparser
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit


def pip_settings(environ: Mapping[str, str], prefix: Path) -> dict[str, str]:
    """pip's options: a later file wins over an earlier one, `[install]` over `[global]`, a variable over all."""
    files = [settings for path in _config_files(environ, prefix) if (settings := _read(path)) is not None]
    merged: dict[str, str] = {}
    for section in ("global", "install"):
        for settings in files:
            if settings.has_section(section):
                merged |= {_option(name): value for name, value in settings.items(section) if value}
    # An empty variable is no variable to pip.
    return merged | {
        _option(name[4:]): value for name, value in environ.items() if name.startswith("PIP_") and value
    }


def uv_variables(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The same in uv's variables. What the environment already tells uv stays as it is."""
    find_links = [_expanded(place) for place in settings.get("find-links", "").split() if _is_there(place)]
    extra = [index for index in settings.get("extra-index-url", "").split() if _is_there(index)]
    certificate = Path(settings.get("cert", "")).expanduser()
    wanted = {
        "UV_DEFAULT_INDEX": settings.get("index-url", ""),
        "UV_INDEX": " ".join(extra),
        # pip takes the best version that any index has; uv by itself would stop at the first index that knows the name.
        "UV_INDEX_STRATEGY": "unsafe-best-match" if extra else "",
        "UV_FIND_LINKS": ",".join(find_links),
        "UV_INSECURE_HOST": " ".join(settings.get("trusted-host", "").split()),
        "SSL_CERT_FILE": str(certificate) if settings.get("cert") and certificate.is_file() else "",
    }
    return {name: value for name, value in wanted.items() if value and not environ.get(name)}


def uv_arguments(settings: Mapping[str, str]) -> tuple[str, ...]:
    """The one setting for which uv has no variable."""
    return ("--no-index",) if settings.get("no-index", "").lower() in ("1", "true", "yes", "on") else ()


def local_folders(find_links: str) -> list[Path]:
    """The folders of this machine among uv's find-links."""
    return [
        folder for place in find_links.split(",") if place and (folder := _local(place)) and folder.is_dir()
    ]


def _config_files(environ: Mapping[str, str], prefix: Path) -> Iterator[Path]:
    """In pip's order, the weakest first. PIP_CONFIG_FILE stands in for the user's own file; /dev/null there for all."""
    named = environ.get("PIP_CONFIG_FILE", "")
    if named == "/dev/null":
        return
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "darwin":
        yield Path("/Library/Application Support/pip/pip.conf")
    else:
        for folder in reversed((environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")):
            yield Path(folder, "pip/pip.conf")
        yield Path("/etc/pip.conf")
    if not (named and Path(named).exists()):
        yield home / ".pip/pip.conf"
        if sys.platform == "darwin" and (home / "Library/Application Support/pip").is_dir():
            yield home / "Library/Application Support/pip/pip.conf"
        else:
            yield Path(environ.get("XDG_CONFIG_HOME") or home / ".config", "pip/pip.conf")
    yield prefix / "pip.conf"
    if named:
        yield Path(named)


def _read(path: Path) -> configparser.RawConfigParser | None:
    """A file that is missing or broken tells us nothing; pip itself will complain about a broken one."""
    settings = configparser.RawConfigParser()
    try:
        settings.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error):
        return None
    return settings


def _option(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("--")


def _is_there(place: str) -> bool:
    """Local folders that are gone would stop uv, where pip passes them over."""
    local = _local(place)
    return local is None or local.exists()


def _expanded(place: str) -> str:
    return place if "://" in place else str(Path(place).expanduser())


def _local(place: str) -> Path | None:
    if place.startswith("file:"):
        return Path(unquote(urlsplit(place).path))
    return None if "://" in place else Path(place).expanduser()
