"""What may be called what: the rules for names, labels and keys, in Kubernetes' words.

Each function returns the problems of one word, none if it is fine.
"""

import re
from functools import lru_cache
from typing import Any

from fullrank.api.meta import Json
from fullrank.errors import Cause

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
KEY_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
LABEL_VALUE = f"({KEY_NAME})?"
DATA_KEY = "[-._a-zA-Z0-9]+"

TOO_LONG = "must be no more than {} characters"
BAD_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
)
BAD_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
)
BAD_LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{LABEL_1035}')"
)
BAD_PART = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{KEY_NAME}')"
)
BAD_KEY = (
    f"a qualified name {BAD_PART} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
BAD_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{LABEL_VALUE}')"
)
BAD_DATA_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    f"or 'key-name', regex used for validation is '{DATA_KEY}')"
)


def _problems(word: str, pattern: str, message: str, longest: int) -> list[str]:
    too_long = [TOO_LONG.format(longest)] if len(word) > longest else []
    return too_long + ([] if re.fullmatch(pattern, word) else [message])


def label_name(word: str) -> list[str]:
    return _problems(word, LABEL, BAD_LABEL, 63)


def subdomain(word: str) -> list[str]:
    return _problems(word, SUBDOMAIN, BAD_SUBDOMAIN, 253)


def label_name_1035(word: str) -> list[str]:
    """A DNS label that starts with a letter, as the names of Services must."""
    return _problems(word, LABEL_1035, BAD_LABEL_1035, 63)


def label_value(word: str) -> list[str]:
    return _problems(word, LABEL_VALUE, BAD_VALUE, 63)


def data_key(word: str) -> list[str]:
    """A key of a ConfigMap or Secret: it becomes a file's name."""
    if word in (".", ".."):
        return [f"must not be '{word}'"]
    return _problems(word, DATA_KEY, BAD_DATA_KEY, 253)


@lru_cache(maxsize=4096)  # the same few keys are on every object
def qualified(word: str) -> tuple[str, ...]:
    """A label's or annotation's key: `name` or `example.com/name`."""
    if word.count("/") > 1:
        return (BAD_KEY,)
    prefix, slash, name = word.rpartition("/")
    problems = ["prefix part must be non-empty"] if slash and not prefix else []
    problems += [f"prefix part {problem}" for problem in (subdomain(prefix) if prefix else [])]
    problems += [] if name else ["name part must be non-empty"]
    return (*problems, *(f"name part {problem}" for problem in _problems(name, KEY_NAME, BAD_PART, 63)))


def label_complaints(labels: Json, path: str) -> list[Cause]:
    """The keys and values of labels, node selectors, service selectors."""
    found: list[tuple[Any, str]] = []
    for key, value in labels.items():
        found += [(key, problem) for problem in qualified(key)]
        if isinstance(value, str):
            found += [(value, problem) for problem in label_value(value)]
    return [Cause(path, f'Invalid value: "{word}": {problem}') for word, problem in found]


def annotation_complaints(annotations: Json, path: str) -> list[Cause]:
    return [
        Cause(path, f'Invalid value: "{key}": {problem}')
        for key in annotations
        for problem in qualified(key.lower())
    ]
