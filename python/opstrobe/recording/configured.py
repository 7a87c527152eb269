# SPDX-License-Identifier: Apache-2.0
"""The options of a profile as attributes, under torch's names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from opstrobe.recording.session_config import SessionConfig
    from opstrobe.recording.stack import StackOptions


class _Option:
    """An attribute that returns the field of the same name of `_config`. Setting it replaces the configuration."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, profile: Configured | None, owner: type | None = None) -> Any:
        return self if profile is None else getattr(profile._config, self._name)

    def __set__(self, profile: Configured, value: object) -> None:
        from dataclasses import replace

        change: dict[str, Any] = {self._name: value}
        profile._config = replace(profile._config, **change)


def option() -> Any:
    """Creates such an attribute. Type checkers use its annotation."""
    return _Option()


class Configured:
    """Common base of profiles and their windows."""

    _config: SessionConfig
    use_device: str | None
    profile_memory: bool = option()
    with_stack: bool | StackOptions = option()
    with_flops: bool = option()
    with_modules: bool = option()
    experimental_config: Any = option()
    acc_events: bool = option()
    custom_trace_id_callback: Callable[[], str] | None = option()
    post_processing_timeout_s: float | None = option()

    def _memory_device(self) -> str:
        """The device whose memory is shown by default."""
        return "cpu" if self.use_device is None else f"{self.use_device}:0"
