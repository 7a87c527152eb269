# SPDX-License-Identifier: Apache-2.0
"""Calls a function once the program has imported torch."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _TorchImport(MetaPathFinder):
    """Calls `then` once, at the end of the program's import of torch."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self._then()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def call_with_torch(then: Callable[[], None]) -> None:
    """Calls `then` once: now if the program has imported torch, else at the end of that import."""
    if "torch" in sys.modules:
        then()
    else:
        call_when_imported(then)


def call_when_imported(then: Callable[[], None]) -> None:
    """Calls `then` once, at the end of the program's import of torch, which must not have begun yet."""
    sys.meta_path.insert(0, _TorchImport(then))
