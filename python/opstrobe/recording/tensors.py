# SPDX-License-Identifier: Apache-2.0
"""The roles of the program's tensors in a profile of memory: parameters, gradients, optimizer state."""

from __future__ import annotations

import sys
import weakref

from opstrobe import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PARAMETER, _BUFFER, _TENSOR = 1, 4, 5  # values of enum ops_role


def _module_tensors(modules: list[Any]) -> Iterator[tuple[str, Any, int]]:
    """Parameters and buffers of modules, with their paths from the outermost module."""
    inner = {id(child) for module in modules for child in module.__dict__.get("_modules", {}).values()}
    pending = [("", module) for module in modules if id(module) not in inner]
    seen = set()
    while pending:
        path, module = pending.pop()
        if module is None or id(module) in seen:
            continue
        seen.add(id(module))
        fields = module.__dict__
        for kind, role in (("_parameters", _PARAMETER), ("_buffers", _BUFFER)):
            for name, tensor in fields.get(kind, {}).items():
                if tensor is not None:
                    yield path + name, tensor, role
        pending += [(f"{path}{name}.", child) for name, child in fields.get("_modules", {}).items()]


class TensorWatch:
    """Records the roles of the program's tensors. At the start it searches all live tensors, which takes a while. Later
    no search is required: it knows the modules that existed or were called, and the optimizers that existed or were
    stepped, through torch's public hook, which is removed at the end. A `brief` watch leaves out steps of an optimizer if
    examining its state would take more than 1/500 of the time."""

    def __init__(self, brief: bool = False) -> None:
        self._torch: Any = sys.modules["torch"]
        self._watch = _core.TensorWatch(self._torch, brief)
        self._modules: list[weakref.ref[Any]] = []
        self._hook: Any = None

    def prepare(self) -> None:
        """Examines all tensors, before the recording starts."""
        torch = self._torch
        found = _core.find_objects(torch.Tensor, torch.nn.Module, torch.optim.Optimizer)
        modules = [item for item in found if issubclass(type(item), torch.nn.Module)]
        self._modules = [weakref.ref(module) for module in modules]
        with torch._C.DisableTorchFunction():
            named = self._hold(modules, [item for item in found if issubclass(type(item), torch.optim.Optimizer)])
            for item in found:
                if issubclass(type(item), torch.Tensor) and id(item) not in named:
                    self._watch.hold("", item, _PARAMETER if issubclass(type(item), torch.nn.Parameter) else _TENSOR)

    def start(self) -> None:
        self._watch.record_roles()
        self._watch.mark(True)
        self.observe_steps(True)

    def observe_steps(self, wanted: bool) -> None:
        """Sets whether the tensors of optimizers are recorded after each of their steps."""
        optimizer = sys.modules.get("torch.optim.optimizer")
        if not wanted:
            self.cancel()
        elif optimizer is not None and self._hook is None:
            self._hook = optimizer.register_optimizer_step_post_hook(self._watch.stepped)

    def stop(self) -> None:
        self.cancel()
        known = [module for module in (ref() for ref in self._modules) if module is not None]
        seen = {id(module) for module in known}
        with self._torch._C.DisableTorchFunction():
            self._hold(
                known + [module for module in _core.called_modules() if id(module) not in seen],
                self._watch.optimizers(),
            )
        self._watch.mark(False)
        self._watch.record_roles()

    def cancel(self) -> None:
        if self._hook is not None:
            self._hook.remove()
        self._hook = None

    def _hold(self, modules: list[Any], optimizers: list[Any]) -> set[int]:
        """The ids of the tensors of modules."""
        named = set()
        for name, tensor, role in _module_tensors(modules):
            named.add(id(tensor))
            if issubclass(type(tensor), self._torch.Tensor):
                self._watch.hold(name, tensor, role)
        for optimizer in optimizers:
            self._watch.hold_optimizer(optimizer)
        return named
