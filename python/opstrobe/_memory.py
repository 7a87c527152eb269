# SPDX-License-Identifier: Apache-2.0
"""What a profile of memory knows of the program's tensors: which are parameters, gradients, optimizer state."""

from __future__ import annotations

import contextlib
import sys

from opstrobe import _core
from opstrobe._enums import DeviceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    # Name, address, bytes, device type, device index, and one of the roles below (enum ops_role).
    Role = tuple[str, int, int, int, int, int]

_PARAMETER, _OPTIMIZER_STATE, _GRADIENT, _BUFFER, _TENSOR = range(1, 6)

# A storage that turns up after the first without an allocation is new; one that is not named after the second is gone.
_ALL_NAMED = ("", 0, 0, 0, -1, _TENSOR)
_ALL_FOLLOW = ("", 0, 0, 0, -1, 0)

_DEVICE_TYPES = {name.lower(): member.value for name, member in DeviceType.__members__.items()}


def _role(torch: Any, name: str, tensor: Any, role: int) -> list[Role]:
    """The role of a tensor's storage; none for a tensor without memory."""
    fake = sys.modules.get("torch._subclasses.fake_tensor")
    if fake is not None and isinstance(tensor, fake.FakeTensor):
        return []  # torch warns when somebody asks for its address, which happens while it compiles a model
    try:
        storage = torch._C.TensorBase.untyped_storage(tensor)
        address, device = storage.data_ptr(), storage.device
        if not address:
            return []
        index = -1 if device.index is None else device.index
        return [(name, address, storage.nbytes(), _DEVICE_TYPES.get(device.type, 0), index, role)]
    except Exception:  # a fake, a wrapper, a tensor of a layout without storage: each says so in its own way
        return []


def _tensors_in(torch: Any, name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The tensors in a value of an optimizer's state, which may be in lists and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict) and depth < 4:
        for key, item in list(value.items()):
            yield from _tensors_in(torch, f"{name}.{key}", item, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < 4:
        for i, item in enumerate(value):
            yield from _tensors_in(torch, f"{name}.{i}", item, depth + 1)


def _of_parameter(torch: Any, name: str, parameter: Any) -> list[Role]:
    gradient = torch._C.TensorBase.grad.__get__(parameter)
    roles = _role(torch, name, parameter, _PARAMETER)
    return roles if gradient is None else roles + _role(torch, name and f"{name}.grad", gradient, _GRADIENT)


def _of_optimizer(torch: Any, optimizer: Any, names: dict[int, str]) -> list[Role]:
    roles: list[Role] = []
    with contextlib.suppress(Exception):  # an optimizer that keeps things its own way
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                roles += _of_parameter(torch, names.get(id(parameter), ""), parameter)
            for key, value in group.items():
                if key != "params" and isinstance(value, torch.Tensor):
                    roles += _role(torch, key, value, _OPTIMIZER_STATE)
        for owner, state in list(optimizer.state.items()):
            for name, tensor in _tensors_in(torch, names.get(id(owner), type(optimizer).__name__), state):
                roles += _role(torch, name, tensor, _OPTIMIZER_STATE)
    return roles


def _module_tensors(torch: Any, modules: list[Any]) -> Iterator[tuple[str, Any, int]]:
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
    """Says in a recording what the program's tensors are for: of all that live when it starts and when it stops, and of
    each optimizer after each of its steps, through torch's public hook, which is taken away again at the end."""

    def __init__(self) -> None:
        self._torch: Any = sys.modules["torch"]
        self._before: list[Role] = []
        self._names: dict[int, str] = {}
        self._hook: Any = None

    def prepare(self) -> None:
        """Looks at all tensors, before the recording starts: this takes a while."""
        self._before = self._roles()

    def start(self) -> None:
        _core.storage_roles([*self._before, _ALL_NAMED])
        self._before = []
        optimizer = sys.modules.get("torch.optim.optimizer")
        if optimizer is not None:
            self._hook = optimizer.register_optimizer_step_post_hook(self._stepped)

    def stop(self) -> None:
        self.cancel()
        _core.storage_roles([_ALL_FOLLOW, *self._roles()])

    def cancel(self) -> None:
        if self._hook is not None:
            self._hook.remove()
        self._hook = None

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        with self._torch._C.DisableTorchFunctionSubclass():
            _core.storage_roles(_of_optimizer(self._torch, optimizer, self._names))

    def _roles(self) -> list[Role]:
        torch = self._torch
        roles: list[Role] = []
        with torch._C.DisableTorchFunctionSubclass():
            found = _core.find_objects(torch.Tensor, torch.nn.Module, torch.optim.Optimizer)
            modules = [item for item in found if issubclass(type(item), torch.nn.Module)]
            optimizers = [item for item in found if issubclass(type(item), torch.optim.Optimizer)]
            for name, tensor, role in _module_tensors(torch, modules):
                self._names[id(tensor)] = name
                roles += _of_parameter(torch, name, tensor) if role == _PARAMETER else _role(torch, name, tensor, role)
            for optimizer in optimizers:
                roles += _of_optimizer(torch, optimizer, self._names)
            for item in found:
                if issubclass(type(item), torch.nn.Parameter) and id(item) not in self._names:
                    roles += _of_parameter(torch, "", item)
                elif issubclass(type(item), torch.Tensor):
                    roles += _role(torch, "", item, _TENSOR)
        return roles
