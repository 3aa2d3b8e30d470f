"""Masks likely secrets before they are recorded: by name (`--password x`) or by form (`ghp_...`).

Names have three degrees. After a name of the first degree (`password`) any value is masked. After one of the second
(`token`, `api_key`) any value except a number or a switch is masked. After one of the third, which contains such a word
(`token_source`), only values that look random are masked. A value without a name is masked only if its form shows that
it is a secret.
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import IntEnum
from itertools import pairwise
from typing import Any

MASKED = "***"


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ALWAYS = _set(
    "password passwords passwd passphrase passcode pwd secret secrets credential credentials apikey secretkey "
    "accesskey privatekey authkey authtoken accesstoken refreshtoken apitoken hftoken githubtoken bearer "
    "authorization sshpass"
)
_ALWAYS_ENDS = ("password", "passwd", "passphrase", "apikey")
"""As in PGPASSWORD."""
_ABOUT = _set(
    "file files path dir folder length len size min max policy prompt field env var name id count type method mode url "
    "uri version timeout stdin provider manager store backend header rotation"
)
"""Last words of names that describe a secret but do not hold it: `--password-file`, `--secret-name`."""
_OWNERS_OF_KEYS = _set(
    "api access secret private auth encryption signing account ssh license licence storage master service client aws "
    "azure gcp s3 wandb comet neptune clearml mlflow openai anthropic hf huggingface github gitlab admin session "
    "deploy ingest"
)
"""`--api-key` opens something; `--obs-key` and `--sort-key` name something."""
_PARTS_OF_TEXT = _set(
    "pad eos bos mask unk sep cls special per stop start end num max min image vision video audio first last next prev "
    "no use each new text action obs observation state patch class mean n"
)
"""`--pad-token` is a word of a language model."""
_OWNERS_OF_PASSES = _set("db user admin root smtp mysql postgres redis pg ftp proxy mail login http")
_HINTS = _set("key keys token tokens auth pass pwd cred creds sig signature cookie jwt sas dsn")
_SWITCHES = frozenset(("", "true", "false", "yes", "no", "on", "off", "none", "null", "auto", MASKED))
_NO_VALUE = _set("no use with without enable disable ask require show has is")
"""First words of a flag that takes no value: `--no-auth`."""
_HASHES = _set("commit revision rev sha sha1 hash git ref digest checksum md5 version checkpoint")

_NUMBER = re.compile(r"[+-]?[\d_]*\.?\d+(e[+-]?\d+)?", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_FORMS = re.compile(
    r"""
    \b(?: sk-(?=[\w-]{0,80}\d)[\w-]{12,} | (?:sk|rk|pk)_(?:live|test)_\w{10,} | gsk_\w{20,}
        | gh[pousr]_[A-Za-z0-9]{16,} | github_pat_\w{20,} | gl(?:pat|dt|rt)-[\w-]{16,}
        | hf_[A-Za-z0-9]{16,} | r8_[A-Za-z0-9]{20,} | nvapi-[\w-]{20,} | wandb_v1_\w{20,} | local-[0-9a-f]{40}
        | (?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16} | AIza[\w-]{30,} | ya29\.[\w-]{16,}
        | xox[abeprs]-[\w-]{10,} | npm_\w{20,} | pypi-[\w-]{20,} | dop_v1_\w{20,} | shp(?:at|ss)_\w{16,}
        | SG\.[\w-]{16,80}\.[\w-]{16,} | eyJ[\w-]{8,2000}\.[\w-]{8,}(?:\.[\w-]*)? )
    | \bhooks\.slack\.com/services/[\w/]+
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*
    """,
    re.VERBOSE | re.DOTALL,
)
_URL = re.compile(r"(://[^\s:/@]*):(?!\d+(?:/|$))\S{1,500}@")
_LOGIN = re.compile(r"(?<![\w/@.-])([\w.-]+):[^\s:@/]+@(?=[\w-]+\.)")
"""Without a scheme: `user:password@host.name`."""
_HEADER = re.compile(r"""(\bauthorization["']?\s{0,9}[:=]\s{0,9}["']?)[^"'\r\n]+""", re.IGNORECASE)
_SCHEME = re.compile(r"\b(Bearer|Basic)(\s+)(?=[\w+/=.~-]*[\d=])[\w+/=.~-]{6,}", re.IGNORECASE)
_ASSIGNED = re.compile(
    r"""(?P<before>^|[^\w.-])(?=[\w.-]{0,60}(?:pass|pwd|secret|cred|key|token|auth|bearer|cookie|sig|jwt|sas|dsn))"""
    r"""(?P<name>[a-z_-][\w.-]{0,100})(?P<is>["']?\s{0,9}[:=]\s{0,9})(?P<value>"[^"]*"|'[^']*'|[^\s"',;&(){}\[\]]+)""",
    re.DOTALL | re.IGNORECASE,
)
_OPTION = re.compile(r"(?P<name>(?:-{1,2}|\+{1,2}|~)?[A-Za-z_][\w./@-]*)=(?P<value>.*)", re.DOTALL)
_LETTERS = re.compile(r"[A-Za-z0-9_+/=.~-]+")


class Degree(IntEnum):
    """How certain a name makes it that its value is a secret."""

    NONE = 0
    HINT = 1
    LIKELY = 2
    SURE = 3


def mask_command(words: Iterable[str]) -> tuple[str, ...]:
    """A command line without its secrets: `--name=value`, `--name value`, `NAME=value`, addresses, tokens."""
    masked = []
    before = ""
    for word in words:
        option, name = _OPTION.fullmatch(word), before
        before = ""
        if name and _may_be_value(word, name):
            masked.append(mask_value(name, word))
        elif option:
            masked.append(f"{option['name']}={mask_value(option['name'], option['value'])}")
        else:
            if _is_option(word) and not _NO_VALUE.intersection(_words(word)[:1]):
                before = word
            masked.append(mask_text(word))
    return tuple(masked)


def mask_line(line: str) -> str:
    """A command line in one string; as it is unless something in it is masked."""
    try:
        words = tuple(shlex.split(line))
    except ValueError:  # a quote without its end
        return mask_text(line)
    masked = mask_command(words)
    return line if masked == words else shlex.join(masked)


def mask_value(name: str, value: str) -> str:
    """The value of something of that name."""
    degree = degree_of(name)
    plain = value.strip("\"' ").lower()
    if plain in _SWITCHES:
        return value
    if (
        degree is Degree.SURE
        or (degree is Degree.LIKELY and not _NUMBER.fullmatch(plain))
        or (degree is Degree.HINT and _looks_random(value.strip("\"' ")))
    ):
        return MASKED
    return mask_text(value, may_be_hash=not _HASHES.isdisjoint(_words(name)))


def mask_setting(name: str, value: Any) -> Any:
    """A setting, however deep its secrets are in dictionaries and lists."""
    if isinstance(value, Mapping):
        return {key: mask_setting(str(key), inner) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(mask_setting(name, inner) for inner in value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return MASKED if degree_of(name) is Degree.SURE else value
    return mask_value(name, value if isinstance(value, str) else str(value))


def mask_text(text: str, may_be_hash: bool = False) -> str:
    """A text that may hold secrets: addresses with a password, tokens of a known form, `password: ...`."""
    text = _URL.sub(rf"\1:{MASKED}@", text)
    text = _LOGIN.sub(rf"\1:{MASKED}@", text)
    text = _HEADER.sub(rf"\1{MASKED}", text)
    text = _SCHEME.sub(rf"\1\2{MASKED}", text)
    text = _FORMS.sub(MASKED, text)
    text = _ASSIGNED.sub(_mask_assigned, text)
    return MASKED if not may_be_hash and _is_key(text.strip()) else text


def degree_of(name: str) -> Degree:
    """How sure a name makes us that its value is a secret."""
    words = _words(name)
    if not words:
        return Degree.NONE
    *owners, last = words
    owner = owners[-1] if owners else ""
    if last in _ALWAYS or last.endswith(_ALWAYS_ENDS) or (not _ALWAYS.isdisjoint(words) and last not in _ABOUT):
        return Degree.SURE
    if (
        (last == "key" and (not owner or owner in _OWNERS_OF_KEYS))
        or (last == "token" and owner not in _PARTS_OF_TEXT)
        or (last in ("keys", "tokens") and owner in _OWNERS_OF_KEYS)
        or (last in ("auth", "jwt", "creds") and owner not in _NO_VALUE)
        or (last == "pass" and (not owner or owner in _OWNERS_OF_PASSES))
    ):
        return Degree.LIKELY
    return Degree.NONE if _HINTS.isdisjoint(words) else Degree.HINT


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _is_option(word: str) -> bool:
    return word.startswith("-") and "=" not in word and not _NUMBER.fullmatch(word) and word.strip("-") != ""


def _may_be_value(word: str, name: str) -> bool:
    """True if the word after an option may be its value. A password may begin with a dash."""
    return not _is_option(word) or (degree_of(name) is Degree.SURE and len(word) > 2 and not word.startswith("--"))


def _mask_assigned(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    degree = degree_of(name)
    quote = value[0] if value[0] in "\"'" else ""
    inside = value[1:-1] if quote else value
    # `key: obs` in a sentence and `sorted(x, key=len)` in code are harmless.
    alone = len(_words(name)) == 1 and found["is"][0] not in "\"'" and found["before"] not in ("?", "&")
    if degree is Degree.LIKELY and alone and (":" in found["is"] or name.lower() == "key"):
        inside = MASKED if _looks_random(inside) else inside
    elif degree:
        inside = mask_value(name, inside)
    return f"{found['before']}{name}{found['is']}{quote}{inside}{quote}"


def _looks_random(value: str) -> bool:
    """True for a value that is long, mixes letters and digits, and is no path. Used if the name is suspicious."""
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return len(value) >= 16 and mixed and _LETTERS.fullmatch(value) is not None and "/" not in value[:2]


def _is_key(value: str) -> bool:
    """True for 40 hex digits, or a long value whose letters and digits follow no pattern. Used without a name."""
    if re.fullmatch(r"[0-9a-f]{40}", value):
        return True
    if len(value) < 28 or _LETTERS.fullmatch(value) is None or value[0] in "/.~-" or value.count("/") > 2:
        return False
    kinds = ["d" if char.isdigit() else "u" if char.isupper() else "l" for char in value if char.isalnum()]
    changes = sum(one != other for one, other in pairwise(kinds))
    return (
        len(set(kinds)) == 3
        and kinds.count("d") >= 3
        and changes >= 0.45 * len(kinds)
        and _entropy(value) >= 4.0
    )  # fmt: skip


def _entropy(text: str) -> float:
    """Bits per character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())
