"""The settings of a training: a dataclass with a docstring under each field, from a file, flags and `key=value`."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from dataclasses import field as dataclass_field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import msgspec

from rlprof.errors import MissingLibraryError, RlprofError

Count = Annotated[int, msgspec.Meta(ge=1)]
"""One or more."""
Several = Annotated[int, msgspec.Meta(ge=2)]
Number = Annotated[int, msgspec.Meta(ge=0)]
"""Zero or more."""
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]

FLAGS = "flags"


def setting(default: Any, *flags: str) -> Any:
    """A field with more flags than its name."""
    return dataclass_field(default=default, metadata={FLAGS: flags})


@dataclass(frozen=True)
class Settings:
    """Settings that every training has."""

    seed: int = 1
    """Random seed of environments, weights and sampling."""
    device: str = "cpu"
    """Device of the networks, such as cpu, cuda or cuda:1."""
    iterations: Count = 20
    """Number of iterations. Each collects experience and updates the policy."""
    timesteps: Count | None = None
    """Total environment steps, instead of --iterations."""
    envs: Count = 1
    """Number of environments."""
    torch_threads: Count = 1
    """Number of torch threads. More than one slows small networks down."""

    @property
    def session_name(self) -> str:
        """Name of the session, if the settings have one."""
        return ""

    @property
    def steps_per_iteration(self) -> int:
        """Environment steps in one iteration."""
        raise NotImplementedError

    @property
    def total_iterations(self) -> int:
        """Iterations of the whole training, as many as its timesteps take."""
        return self.iterations if self.timesteps is None else -(-self.timesteps // self.steps_per_iteration)


@dataclass(frozen=True)
class LearningSettings:
    """Settings of every actor-critic training."""

    learning_rate: Positive = 3e-4
    """Learning rate of Adam."""
    gamma: Share = 0.99
    """Discount factor of the reward."""
    gae_lambda: Share = 0.95
    """Decay factor of generalised advantage estimation."""


@dataclass(frozen=True)
class PPOSettings(LearningSettings):
    """Settings of PPO."""

    clip: Positive = 0.2
    """Largest change of a probability ratio from 1 before PPO clips it."""
    entropy: float = 0.01
    """Weight of the entropy bonus."""


Made = TypeVar("Made", bound=Settings)


def make_settings(cls: type[Made], *layers: tuple[str, Mapping[str, Any]]) -> Made:
    """Settings from named layers. Each layer overrides those before it, and nested mappings are merged."""
    merged: dict[str, Any] = {}
    for name, layer in layers:
        check_keys(cls, layer, name)
        try:
            msgspec.convert(layer, cls)
        except msgspec.ValidationError as error:
            raise RlprofError(f"{name}: {_readable(error)}") from error
        _merge(merged, layer)
    return msgspec.convert(merged, cls)


def read_config(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RlprofError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    yaml = _yaml()
    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark is not None else ""
        raise RlprofError(f"{path}{place}: the file is neither YAML nor JSON") from error
    if read is None:
        return {}
    if not isinstance(read, dict):
        raise RlprofError(f"{path} holds a {type(read).__name__}; write settings as key: value")
    return {key: _with_numbers(value) for key, value in read.items()}


def read_overrides(words: Sequence[str]) -> dict[str, Any]:
    """Read words like `trainer.batch_size=512` into a nested mapping. Values are YAML: 5_000, True, [1, 2], text."""
    overrides: dict[str, Any] = {}
    yaml = _yaml()
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise RlprofError(f"{word!r} is not a setting; write key=value, such as seed=2")
        *path, last = key.split(".")
        inner = overrides
        for name in path:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                raise RlprofError(f"{word}: {name} already has a value, so it has no parts")
        try:
            inner[last] = _with_numbers(yaml.safe_load(value))
        except yaml.YAMLError:
            inner[last] = value
    return overrides


def as_words(settings: Any, default: Any = None, path: str = "") -> Iterator[str]:
    """The settings that differ from their defaults, as `read_overrides` takes them."""
    default = default or type(settings)()
    for field in fields(settings):
        value, usual = getattr(settings, field.name), getattr(default, field.name)
        if is_dataclass(value):
            yield from as_words(value, usual, f"{path}{field.name}.")
        elif value != usual:
            yield f"{path}{field.name}={msgspec.json.encode(value).decode()}"


def check_keys(cls: type, layer: Mapping[str, Any], name: str, path: str = "") -> None:
    """Raise RlprofError for a key that is no field of the settings."""
    hints = get_type_hints(cls)
    for key, value in layer.items():
        if key not in hints:
            near = difflib.get_close_matches(str(key), hints, 1) or [
                found for found in all_keys(cls) if found.rpartition(".")[2] == key
            ]
            hint = f"did you mean {path}{near[0]}?" if near else f"there are {', '.join(path + key for key in hints)}"
            raise RlprofError(f"{name}: there is no setting {path}{key}; {hint}")
        if is_dataclass(hints[key]):
            if not isinstance(value, Mapping):
                parts = ", ".join(f"{path}{key}.{field.name}" for field in fields(hints[key]))
                raise RlprofError(f"{name}: {path}{key} has parts: {parts}")
            check_keys(hints[key], value, name, f"{path}{key}.")


def all_keys(cls: type, path: str = "") -> Iterator[str]:
    """The keys as they are written in `key=value`."""
    for name, hint in get_type_hints(cls).items():
        if is_dataclass(hint):
            yield from all_keys(hint, f"{path}{name}.")  # type: ignore[arg-type]
        else:
            yield f"{path}{name}"


def describe(cls: type) -> dict[str, str]:
    """The docstring of each field, including those of base classes."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not is_dataclass(base):
            continue
        tree: Any = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        for before, after in pairwise(tree.body):
            match before, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = inspect.cleandoc(text)
    return found


def _merge(into: dict[str, Any], layer: Mapping[str, Any]) -> None:
    for key, value in layer.items():
        if isinstance(value, Mapping):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


def _readable(error: msgspec.ValidationError) -> str:
    """Turn "Expected `int`, got `str` - at `$.trainer.batch_size`" around, so that the place comes first."""
    what, _, place = str(error).replace("`", "").partition(" - at $.")
    return f"{place}: {what[:1].lower()}{what[1:]}" if place else what


def _with_numbers(read: Any) -> Any:
    """Read 1e-3 as a number. YAML takes it for text, because it has no dot."""
    if isinstance(read, dict):
        return {key: _with_numbers(value) for key, value in read.items()}
    if isinstance(read, str) and _EXPONENT.fullmatch(read):
        return float(read)
    return read


_EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")


def _yaml() -> Any:
    try:
        import yaml  # noqa: PLC0415 - not needed for flags alone
    except ImportError as error:
        raise MissingLibraryError("reading settings", "PyYAML", "workloads") from error
    return yaml
