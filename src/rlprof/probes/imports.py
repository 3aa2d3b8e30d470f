"""Runs a function once a module is imported: at once, or when the program imports it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # importlib.abc is slow to import

After = Callable[[ModuleType], None]


class ImportHooks:
    """A finder on sys.meta_path. It lets the other finders find, and wraps the loader of the modules it waits for."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[After]] = {}

    def after(self, name: str, function: After) -> None:
        """Call the function with the module, at once or after its import."""
        module = sys.modules.get(name)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            function(module)
            return
        self._waiting.setdefault(name, []).append(function)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        self._waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._waiting:
            return None
        for finder in list(sys.meta_path):
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Watched(spec.loader, lambda module: self._imported(name, module))
                return spec
        return None

    def _imported(self, name: str, module: ModuleType) -> None:
        for function in self._waiting.pop(name, []):
            function(module)


class _Watched(Loader):
    """A loader that removes itself before it loads: the module keeps the loader that it would have had."""

    def __init__(self, loader: Any, after: After) -> None:
        self._loader = loader
        self._after = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._after(module)
