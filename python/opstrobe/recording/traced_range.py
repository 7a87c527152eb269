# SPDX-License-Identifier: Apache-2.0
"""`record_function` in a function that torch traces: called from its C type, and imported at the first use."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def begin(name: str, args: str | None) -> Any:
    """Opens a range by an operator, which becomes part of the traced function. Returns the argument of end()."""
    import torch

    return torch.ops.profiler._record_function_enter_new(name, args)


def end(opened: Any) -> None:
    """Closes the range, also by an operator."""
    import torch

    with torch._C.DisableTorchFunctionSubclass():
        torch.ops.profiler._record_function_exit._RecordFunction(opened)
