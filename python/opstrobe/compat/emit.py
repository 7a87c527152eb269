# SPDX-License-Identifier: Apache-2.0
"""emit_itt and emit_nvtx: a range of VTune or Nsight around every operator, emitted by torch's own recorder."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any


class _Emit:
    """Enabled while the block runs, for the calling thread and threads that inherit its state. Can be used once."""

    _state = ""  # state of torch's recorder

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{type(self).__name__} annotation context manager is not reentrant")
        from torch._C._autograd import _enable_profiler
        from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig

        self.entered = True
        self._synchronize()
        state = getattr(ProfilerState, self._state)
        _enable_profiler(
            ProfilerConfig(state, self.record_shapes, False, False, False, False, _ExperimentalConfig()), set()
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if not self.enabled:
            return None
        from torch._C._autograd import _disable_profiler

        self._synchronize()
        _disable_profiler()
        return False

    def _synchronize(self) -> None:
        """Waits for queued work, so that it is outside of the ranges."""


class emit_itt(_Emit):
    """Every operator as a range that VTune shows, optionally with its shapes."""

    _state = "ITT"


class emit_nvtx(_Emit):
    """Every operator as a range that Nsight shows, optionally with its shapes. Requires a torch with CUDA."""

    _state = "NVTX"

    def _synchronize(self) -> None:
        import torch

        torch.cuda.synchronize()
