# SPDX-License-Identifier: Apache-2.0
"""Finds or builds the torch bridge, the library through which torch's operators are recorded.

It is compiled against the headers of one torch and serves that torch alone. In this order: one that was built beforehand
and lies in `bridge/` beside this file; one in the user's cache; one compiled now, in a few seconds, into that cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from opstrobe import _core

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_PACKAGE = Path(__file__).resolve().parent
_COMPILERS = ("c++", "g++", "clang++")
_ADVICE = (
    "install a C++ compiler (Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++; conda: conda install gxx) "
    "or name one in the environment variable CXX"
)


class BridgeError(RuntimeError):
    """The torch bridge is missing and cannot be made; the text says what to do about it."""


class _Sources(NamedTuple):
    main: Path
    include: tuple[Path, ...]
    files: tuple[Path, ...]


def _sources() -> _Sources:
    """As installed, or as they lie in the source tree."""
    for main, include in (
        (_PACKAGE / "bridge", _PACKAGE / "bridge" / "include"),
        (_PACKAGE.parent / "ext", _PACKAGE.parent.parent / "include"),
    ):
        files = (
            main / "torch_bridge.cpp",
            main / "torch_bridge.h",
            main / "torch_collective.hpp",
            main / "torch_device_events.hpp",
            main / "torch_names.hpp",
            main / "torch_observer.hpp",
            main / "torch_payload.hpp",
            main / "torch_script.hpp",
            main / "torch_storages.hpp",
            main / "torch_values.hpp",
            include / "opstrobe" / "collector.h",
            include / "opstrobe" / "counters.h",
            include / "opstrobe" / "error.h",
            include / "opstrobe" / "execution_trace.h",
            include / "opstrobe" / "inputs.h",
            include / "opstrobe" / "storage.h",
        )
        if all(file.is_file() for file in files):
            return _Sources(files[0], (main, include), files)
    raise BridgeError(f"the torch bridge's source is missing beside {_PACKAGE}: install opstrobe again")


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("opstrobe")
    except metadata.PackageNotFoundError:
        return "0"


def _standard(torch: ModuleType) -> str:
    """The C++ that torch's headers are written in."""
    numbers = re.match(r"(\d+)\.(\d+)", torch.__version__)
    return "c++20" if numbers and (int(numbers[1]), int(numbers[2])) >= (2, 14) else "c++17"


def _flags(torch: ModuleType) -> list[str]:
    # Without NDEBUG, RecordFunction::inputs() checks a flag that release builds of torch never set, and throws.
    return [
        f"-std={_standard(torch)}",
        "-O2",
        "-DNDEBUG",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-fno-plt",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        f'-DOPS_TORCH_VERSION="{torch.__version__}"',
    ]


def _file_name(torch: ModuleType, sources: _Sources) -> str:
    """Names everything that a bridge depends on; what has no name is in the digest."""
    digest = hashlib.sha256("\0".join([*_flags(torch), platform.machine(), os.name]).encode())
    for file in sources.files:
        digest.update(file.read_bytes())
    return "-".join(
        (
            f"torch{torch.__version__}",
            f"abi{int(torch.compiled_with_cxx11_abi())}",
            sys.implementation.cache_tag,
            f"opstrobe{_version()}",
            f"{digest.hexdigest()[:16]}.so",
        )
    )


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "opstrobe" / "bridge"


def _compiler() -> list[str]:
    named = shlex.split(os.environ.get("CXX", ""))
    if named:
        if shutil.which(named[0]):
            return named
        raise BridgeError(f"the torch bridge cannot be compiled: CXX names '{named[0]}', which is not there; {_ADVICE}")
    for name in _COMPILERS:
        if shutil.which(name):
            return [name]
    raise BridgeError(f"the torch bridge has to be compiled once for this torch, and there is no compiler: {_ADVICE}")


def _compile(torch: ModuleType, sources: _Sources, target: Path) -> None:
    """Makes `target` whole or not at all."""
    if sys.stderr is not None and sys.stderr.isatty():  # somebody is waiting
        print(f"opstrobe: compiling the bridge to torch {torch.__version__}, once ...", file=sys.stderr)
    home = Path(str(torch.__file__)).resolve().parent
    if not (home / "include" / "ATen" / "record_function.h").is_file():
        raise BridgeError(f"the torch bridge cannot be compiled: torch in {home} comes without its C++ headers")
    handle, scratch = tempfile.mkstemp(suffix=".so", dir=target.parent)
    os.close(handle)
    command = [
        *_compiler(),
        *_flags(torch),
        *(f"-I{folder}" for folder in sources.include),
        *("-isystem", str(home / "include")),
        str(sources.main),
        *("-o", scratch),
        *(f"-L{home / 'lib'}", "-lc10", "-ltorch_cpu"),
    ]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            said = "\n".join((done.stderr or done.stdout).splitlines()[:30])
            raise BridgeError(
                f"the torch bridge did not compile for torch {torch.__version__} "
                f"(it takes a compiler with {_standard(torch)}; CXX chooses one):\n{shlex.join(command)}\n{said}"
            )
        os.chmod(scratch, 0o755)
        os.replace(scratch, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time. Where files cannot be locked several may build at once, which does no harm."""
    import fcntl

    with open(path, "w") as lock:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(torch: ModuleType, sources: _Sources, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(target.with_suffix(".lock")):
        if not target.is_file():
            _compile(torch, sources, target)


def build_into(folder: str) -> str:
    """Compiles the bridge to the torch that this process has, to be packed beside the package; returns its path."""
    import torch

    sources = _sources()
    target = Path(folder) / _file_name(torch, sources)
    _build(torch, sources, target)
    return str(target)


def _build_and_load(torch: ModuleType, sources: _Sources, target: Path) -> None:
    try:
        _build(torch, sources, target)
    except OSError:  # no cache to write to: for this process alone, then
        with tempfile.TemporaryDirectory(prefix="opstrobe-") as folder:
            alone = Path(folder) / target.name
            _compile(torch, sources, alone)
            _core.load_bridge(str(alone))
        return
    _core.load_bridge(str(target))


def _is_whole(path: Path) -> bool:
    """Whether a library ends where its header says; to load one that was cut off can kill the process."""
    with open(path, "rb") as file:
        header = file.read(64)
    if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
        return False
    (sections,) = struct.unpack_from("<Q", header, 40)
    size, count = struct.unpack_from("<HH", header, 58)
    return path.stat().st_size >= int(sections + size * count)


def _try_to_load(path: Path) -> bool:
    try:
        if not path.is_file() or not _is_whole(path):
            return False
        _core.load_bridge(str(path))
    except (OSError, ImportError):
        return False
    return True


def load() -> None:
    """Loads the bridge for the torch that this process has, building it if need be. Does nothing the second time."""
    if _core.bridge_info() is not None:
        return
    import torch

    sources = _sources()
    name = _file_name(torch, sources)
    cached = cache_directory() / name
    if _try_to_load(_PACKAGE / "bridge" / name) or _try_to_load(cached):
        return
    with contextlib.suppress(OSError):
        cached.unlink()  # damaged, if it is there at all
    _build_and_load(torch, sources, cached)


def info() -> dict[str, Any]:
    """How things stand, for `opstrobe doctor`. Imports torch, builds nothing."""
    answer: dict[str, Any] = {"loaded": _core.bridge_info(), "cache": str(cache_directory())}
    try:
        answer["compiler"] = shlex.join(_compiler())
    except BridgeError as error:
        answer["compiler_error"] = str(error)
    try:
        import torch

        answer["torch"] = torch.__version__
        name = _file_name(torch, _sources())
    except (ImportError, BridgeError) as error:
        answer["error"] = str(error)
        return answer
    answer["prebuilt"] = str(_PACKAGE / "bridge" / name)
    answer["cached"] = str(cache_directory() / name)
    answer["found"] = next((path for path in (answer["prebuilt"], answer["cached"]) if os.path.isfile(path)), None)
    return answer
