# SPDX-License-Identifier: Apache-2.0
"""The options of a session. Imported when the first profile is created, because `dataclasses` is slow to import."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opstrobe.recording.activities import device_kinds, sampling_of
from opstrobe.recording.experimental_config import values_of
from opstrobe.recording.stack import StackOptions, path_prefixes, stack_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opstrobe.recording.activities import Sampling

_MAX_BYTES_LEAST = 65536  # the unit in which a thread allocates memory
# Shares of a processor that samples of stacks may take: in a recording, and in a black box, which runs all the time.
_SAMPLES_SHARE = 0.01
_SAMPLES_SHARE_ALWAYS = 0.002


@dataclass(frozen=True)
class SessionConfig:
    """The options of a profile. Created from the arguments of a public class or of a command, then passed on as one
    object.

    The last five are derived from others: kinds of device activity that extensions add, counters to sample, whether
    records require the ids that an execution trace refers to, and for a black box how much it keeps and how often it
    samples stacks.
    """

    use_cpu: bool = True
    use_device: str | None = None
    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool | StackOptions = False
    with_flops: bool = False
    with_modules: bool = False
    experimental_config: Any = None
    acc_events: bool = False
    custom_trace_id_callback: Callable[[], str] | None = None
    post_processing_timeout_s: float | None = None
    max_bytes: int | None = None
    spill: str | os.PathLike[str] | None = None
    activity_filters: Mapping[Any, Iterable[str]] | None = None
    added_kinds: frozenset[str] = frozenset()
    counters: Sampling | None = None
    record_ids: bool = False
    ring_seconds: float | None = None  # time span kept in a ring of `max_bytes`; None: all
    sample_ms: float = 0  # milliseconds between two samples of the Python stacks; 0: none, or what `with_stack` says

    def __post_init__(self) -> None:
        value = self.max_bytes
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"max_bytes must be an int or None, not {type(value).__name__}")
        if not _MAX_BYTES_LEAST <= value < 2**63:
            raise ValueError(f"max_bytes must be at least {_MAX_BYTES_LEAST:,} and less than 2**63, got {value}")

    @cached_property
    def experimental(self) -> dict[str, Any]:
        """All fields of the experimental configuration."""
        return values_of(self.experimental_config)

    @cached_property
    def device_kinds(self) -> frozenset[str]:
        """The kinds of CUDA's activity to record."""
        return (
            device_kinds(self.activity_filters or {}, self.experimental["enable_cuda_sync_events"]) | self.added_kinds
        )

    @property
    def sampling(self) -> Sampling | None:
        """The hardware counters to sample; None: none."""
        return (self.counters or sampling_of({})) if "PM_SAMPLING" in self.device_kinds else None

    @property
    def stack_samples(self) -> tuple[float, float, tuple[str, ...]] | None:
        """The seconds between two samples of the Python stacks, the share of a processor that they may take, and what
        paths are recorded without; None: no samples."""
        if self.sample_ms:
            return self.sample_ms / 1000, _SAMPLES_SHARE_ALWAYS, ()
        if isinstance(self.with_stack, StackOptions) and not self.with_stack.calls and self.with_stack.sample_ms:
            return self.with_stack.sample_ms / 1000, _SAMPLES_SHARE, path_prefixes()
        return None

    def session_arguments(self) -> dict[str, Any]:
        """The arguments of `_core.Session` that do not depend on the available devices."""
        return {
            "record_shapes": self.record_shapes or self.with_flops,
            "profile_memory": self.profile_memory,
            "all_threads": self.experimental["profile_all_threads"],
            "capture_overload_names": self.experimental["capture_overload_names"],
            "modules": self.with_modules or bool(self.with_stack),
            "script_modules": self.with_modules,
            "record_ids": self.record_ids,
            "max_bytes": self.max_bytes or 0,
            "ring": self.ring_seconds is not None,
            "ring_ns": int((self.ring_seconds or 0) * 1e9),
            "performance_events": tuple(self.experimental["performance_events"]),
            **stack_arguments(self.with_stack, self.experimental["record_python_gc_info"]),
        }
