# SPDX-License-Identifier: Apache-2.0
"""What a run finds out about an unmodified program: its optimizers, its outermost modules, and the results of each
step.

Results are the values that backward passes start from. Without a backward pass, they are the outputs of the outermost
modules. Every tenth step also includes the parameters of the optimizers. Nothing here draws a random number or changes
a tensor.
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any

# Modules are watched only during these steps, unless their outputs are the results.
WARM_UP_STEPS = 3
_PARAMETERS_EVERY = 10


def digest(torch: Any, tensor: Any) -> tuple[Any, Any] | None:
    """Returns two one-element tensors: a sum of the bits, which is the same in any order, and a norm. Returns None for
    a tensor without them."""
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        if tensor.layout != torch.sparse_coo:
            return None
        tensor = tensor.coalesce().values()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    flat = tensor.contiguous().reshape(-1)
    if not flat.is_floating_point():
        return flat.sum(dtype=torch.int64), flat.sum(dtype=torch.float64)
    width = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[flat.element_size()]
    return flat.view(width).sum(dtype=torch.int64), torch.linalg.vector_norm(flat.double())


def _tensors(value: Any) -> list[Any]:
    """Returns the tensors in the output of a module."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for item in value for tensor in _tensors(item)]


class WatchedProgram:
    """The program of this process. To be created after the import of torch."""

    def __init__(self) -> None:
        import torch

        self.torch: Any = torch
        self.called_backward = False
        self.ran_evaluation = False  # a module in evaluation mode, with gradients enabled
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._roots: weakref.WeakSet[Any] = weakref.WeakSet()
        self._values: list[Any] = []  # values of the current step
        self._results: list[list[tuple[Any, Any]]] = []
        self._depth = threading.local()
        self._watch_backward()
        self._watch_optimizers()
        self._hooks = self._watch_modules()

    @property
    def optimizers(self) -> list[Any]:
        return list(self._optimizers)

    @property
    def roots(self) -> list[Any]:
        """The outermost modules that were called."""
        return list(self._roots)

    @property
    def uses_cuda(self) -> bool:
        return bool(self.torch.cuda.is_available() and self.torch.cuda.is_initialized())

    def synchronize(self) -> None:
        if self.uses_cuda:
            self.torch.cuda.synchronize()

    # --- results -----------------------------------------------------------------------------------------------------

    def end_step(self) -> None:
        """Keeps the results of the step, without waiting for a device."""
        values, self._values = self._values, []
        if (len(self._results) + 1) % _PARAMETERS_EVERY == 0:
            values += self._parameters()
        with self.torch.no_grad():
            self._results.append([found for value in values if (found := digest(self.torch, value)) is not None])
        if len(self._results) == WARM_UP_STEPS and self.called_backward:
            for hook in self._hooks:
                hook.remove()

    def _parameters(self) -> list[Any]:
        return [
            tensor for optimizer in self._optimizers for group in optimizer.param_groups for tensor in group["params"]
        ]

    def results(self) -> list[list[tuple[int, float]]]:
        """For each step: bits and norm of each value."""
        return [[(int(bits), float(norm)) for bits, norm in step] for step in self._results]

    # --- watching ----------------------------------------------------------------------------------------------------

    def _watch_backward(self) -> None:
        autograd = self.torch.autograd
        backward, grad = autograd.backward, autograd.grad

        @functools.wraps(backward)
        def watched(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.called_backward:
                self.called_backward = True
                self._values.clear()  # outputs of modules
            for tensor in _tensors(tensors):
                self._values.append(tensor.detach().clone())
            return backward(tensors, *args, **kwargs)

        @functools.wraps(grad)
        def watched_grad(*args: Any, **kwargs: Any) -> Any:
            self.called_backward = True
            return grad(*args, **kwargs)

        autograd.backward, autograd.grad = watched, watched_grad

    def _watch_optimizers(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(lambda optimizer, *_: self._optimizers.add(optimizer))

    def _watch_modules(self) -> list[Any]:
        from torch.compiler import is_compiling
        from torch.nn.modules import module as modules

        def before(module: Any, _: Any) -> None:
            if is_compiling():
                return
            depth = getattr(self._depth, "value", 0)
            self._depth.value = depth + 1
            if depth == 0:
                self._roots.add(module)
                self.ran_evaluation |= not module.training and self.torch.is_grad_enabled()

        def after(module: Any, _: Any, output: Any) -> None:
            if is_compiling():
                return
            self._depth.value = max(getattr(self._depth, "value", 0) - 1, 0)
            if self._depth.value == 0 and not self.called_backward:
                self._values += [tensor.detach() for tensor in _tensors(output)]

        return [
            modules.register_module_forward_pre_hook(before),
            modules.register_module_forward_hook(after, always_call=True),
        ]
