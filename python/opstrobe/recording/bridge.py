# SPDX-License-Identifier: Apache-2.0
"""Finds or builds the torch bridge, the library through which torch's operators are recorded.

It is compiled against the headers of one version of torch, and works only with that version. The first of these is
used: a library that was built with the package, in its folder `bridge/`; one in the user's cache; one compiled now, in
a few seconds, into that cache.

A library from the cache runs with the rights of the user. So the cache is used only if nobody else can write to it, and
each library in it ends with a checksum of the preceding bytes.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import platform
import re
import shlex
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from opstrobe import _core
from opstrobe._warn import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

_PACKAGE = Path(__file__).resolve().parent.parent
_SCRATCH = ".part.so"  # compilers want libraries to have this suffix
_CHECKSUM_MARK = b"opstrobe"
_COMPILERS = ("c++", "g++", "clang++")
_ADVICE = (
    "install a C++ compiler (Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++; conda: conda install gxx) "
    "or name one in the environment variable CXX"
)


class BridgeError(RuntimeError):
    """The torch bridge is missing and cannot be built. The text suggests what to do."""


class _UnsafeCache(OSError):
    """Other users may write to the directory for compiled bridges."""


class _Sources(NamedTuple):
    main: Path
    include: tuple[Path, ...]
    files: tuple[Path, ...]


def _sources() -> _Sources:
    """Finds the sources as installed, or in the source tree."""
    for main, include in (
        (_PACKAGE / "bridge", _PACKAGE / "bridge" / "include"),
        (_PACKAGE.parent / "ext", _PACKAGE.parent.parent / "include"),
    ):
        files = (
            main / "torch_bridge.cpp",
            main / "torch_bridge.h",
            main / "torch_allocator.hpp",
            main / "torch_collective.hpp",
            main / "torch_device_events.hpp",
            main / "torch_fork.hpp",
            main / "torch_integers.hpp",
            main / "torch_names.hpp",
            main / "torch_observer.hpp",
            main / "torch_payload.hpp",
            main / "torch_script.hpp",
            main / "torch_sizes.hpp",
            main / "torch_storages.hpp",
            main / "torch_values.hpp",
            include / "opstrobe" / "error.h",
            include / "opstrobe" / "inputs.h",
            include / "opstrobe" / "internal" / "collector.h",
            include / "opstrobe" / "internal" / "counters.h",
            include / "opstrobe" / "internal" / "execution_trace.h",
            include / "opstrobe" / "storage.h",
        )
        if all(file.is_file() for file in files):
            return _Sources(files[0], (main, include), files)
    raise BridgeError(f"the torch bridge's source is missing next to {_PACKAGE}: install opstrobe again")


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("opstrobe")
    except metadata.PackageNotFoundError:
        return "0"


def _standard(torch: ModuleType) -> str:
    """The C++ standard of torch's headers."""
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
        "-Wl,-z,relro,-z,now",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        f'-DOPS_TORCH_VERSION="{torch.__version__}"',
    ]


def _file_name(torch: ModuleType, sources: _Sources) -> str:
    """The name contains everything that a bridge depends on; parts without a name are in the digest."""
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
    if os.path.isabs(base):
        return Path(base) / "opstrobe" / "bridge"
    try:
        return Path.home() / ".cache" / "opstrobe" / "bridge"
    except RuntimeError:  # neither HOME nor an entry in the system's list of users
        return Path(tempfile.gettempdir()) / f"opstrobe-{os.getuid()}" / "bridge"


def _check_private(path: Path) -> None:
    """Raises _UnsafeCache unless `path`, a file or a directory, belongs to the user and nobody else may change or
    replace it."""
    trusted = {0, os.geteuid(), os.stat("/").st_uid}
    place = path.lstat()
    if stat.S_ISLNK(place.st_mode) or place.st_uid not in trusted or place.st_mode & 0o022:
        raise _UnsafeCache(f"'{path}' belongs to somebody else, or others may write to it")
    for folder in path.resolve().parents:
        place = folder.stat()
        groups = 0 if place.st_gid in (0, os.getegid()) else stat.S_IWGRP
        open_to_others = place.st_mode & (groups | stat.S_IWOTH) and not place.st_mode & stat.S_ISVTX
        if place.st_uid not in trusted or open_to_others:
            raise _UnsafeCache(f"'{folder}' belongs to somebody else, or others may write to it")


def _compiler() -> list[str]:
    named = shlex.split(os.environ.get("CXX", ""))
    if named:
        if shutil.which(named[0]):
            return named
        raise BridgeError(f"the torch bridge cannot be compiled: CXX names '{named[0]}', which is not there; {_ADVICE}")
    for name in _COMPILERS:
        if shutil.which(name):
            return [name]
    raise BridgeError(f"the torch bridge has to be compiled once for this torch, but no compiler was found: {_ADVICE}")


def _compile(torch: ModuleType, sources: _Sources, target: Path) -> None:
    """Creates `target` completely or not at all."""
    if sys.stderr is not None and sys.stderr.isatty():  # a user is waiting
        print(f"opstrobe: compiling the bridge to torch {torch.__version__}, once ...", file=sys.stderr)
    home = Path(str(torch.__file__)).resolve().parent
    if not (home / "include" / "ATen" / "record_function.h").is_file():
        raise BridgeError(f"the torch bridge cannot be compiled: torch in {home} comes without its C++ headers")
    handle, scratch = tempfile.mkstemp(prefix=f"{target.name}.", suffix=_SCRATCH, dir=target.parent)
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
        _append_checksum(scratch)
        os.chmod(scratch, 0o755)
        os.replace(scratch, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise


def _append_checksum(path: str) -> None:
    with open(path, "r+b") as file:
        digest = hashlib.sha256(file.read()).digest()
        file.write(_CHECKSUM_MARK + digest)


def _has_checksum(path: Path) -> bool:
    """Returns whether a library is unchanged since it was compiled. Loading a damaged one can kill the process."""
    content = path.read_bytes()
    end = len(content) - len(_CHECKSUM_MARK) - hashlib.sha256().digest_size
    return end > 0 and content[end:] == _CHECKSUM_MARK + hashlib.sha256(content[:end]).digest()


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Yields True to one process at a time. Yields False where files cannot be locked: several processes may then build
    at once, which does no harm."""
    import fcntl

    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        locked = stat.S_ISREG(os.fstat(lock).st_mode)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            locked = False
        yield locked
    finally:
        os.close(lock)


def _make_directory(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # independent of the umask
    path.mkdir(mode=0o700, exist_ok=True)


def _build(torch: ModuleType, sources: _Sources, target: Path) -> None:
    _make_directory(target.parent)
    with _alone(target.with_suffix(".lock")) as locked:
        if locked:  # killed processes leave temporary files
            for scratch in target.parent.glob(f"{glob.escape(target.name)}.*{_SCRATCH}"):
                scratch.unlink()
        if not target.is_file():
            _compile(torch, sources, target)


def build_into(folder: str) -> str:
    """Compiles the bridge for the torch of this process, to be packed with the package. Returns its path."""
    import torch

    sources = _sources()
    target = Path(folder) / _file_name(torch, sources)
    _build(torch, sources, target)
    return str(target)


def _build_and_load(torch: ModuleType, sources: _Sources, target: Path) -> None:
    try:
        _make_directory(target.parent)
        _check_private(target.parent)
        _build(torch, sources, target)
    except OSError as error:  # the cache is not writable: compile for this process only
        if isinstance(error, _UnsafeCache):
            warn(f"the torch bridge is compiled for this process alone: the cache is not safe, {error}")
        with tempfile.TemporaryDirectory(prefix="opstrobe-") as folder:
            alone = Path(folder) / target.name
            _compile(torch, sources, alone)
            _core.load_bridge(str(alone))
        return
    _core.load_bridge(str(target))


def _is_whole(path: Path) -> bool:
    """Returns whether a library is as long as its header says. Loading a truncated one can kill the process."""
    with open(path, "rb") as file:
        header = file.read(64)
    if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
        return False
    (sections,) = struct.unpack_from("<Q", header, 40)
    size, count = struct.unpack_from("<HH", header, 58)
    return path.stat().st_size >= int(sections + size * count)


def _try_to_load(path: Path, is_good: Callable[[Path], bool]) -> bool:
    try:
        if not path.is_file() or not is_good(path):
            return False
        _core.load_bridge(str(path))
    except (OSError, ImportError):
        return False
    return True


def _is_good_in_cache(path: Path) -> bool:
    _check_private(path.parent)
    _check_private(path)
    return _has_checksum(path)


def _load_found(cached: Path) -> bool:
    return _try_to_load(_PACKAGE / "bridge" / cached.name, _is_whole) or _try_to_load(cached, _is_good_in_cache)


def load() -> None:
    """Loads the bridge for the torch of this process, and builds it if necessary. Does nothing the second time."""
    if _core.bridge_info() is not None:
        return
    import torch

    sources = _sources()
    cached = cache_directory() / _file_name(torch, sources)
    if _load_found(cached):
        return
    with contextlib.suppress(OSError):
        cached.unlink()  # unusable, if it exists at all
    _build_and_load(torch, sources, cached)


def problem() -> str | None:
    """Why there is no bridge for the torch of this process, after trying to load one or to compile it into the cache;
    None if there is one. Does not compile for this process alone, as a program that profiles does."""
    import torch

    try:
        cached = cache_directory() / _file_name(torch, _sources())
        if _core.bridge_info() is None and not _load_found(cached):
            if os.access(_existing(cached.parent), os.W_OK | os.X_OK):
                load()
            else:
                _compiler()
    except (BridgeError, OSError) as error:
        return str(error)
    return None


def _existing(directory: Path) -> Path:
    return next(folder for folder in (directory, *directory.parents) if folder.exists())


def cache_problem() -> str | None:
    """Why an existing cache is not used."""
    try:
        _check_private(cache_directory())
    except _UnsafeCache as error:
        return str(error)
    except OSError:
        pass  # it does not exist yet, or cannot be accessed
    return None


def info() -> dict[str, Any]:
    """The state of the bridge, for `opstrobe doctor`. Imports torch, but builds nothing."""
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
