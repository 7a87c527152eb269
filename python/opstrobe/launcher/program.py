# SPDX-License-Identifier: Apache-2.0
"""A Python program (a script, a module, or code), run in this process as Python itself would run it.

It gets a separate `__main__`, its own `sys.argv` and `sys.path[0]`. If it ends with an exception, the traceback
contains none of our frames.
"""

from __future__ import annotations

import builtins
import io
import os
import pkgutil
import runpy
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from types import ModuleType, TracebackType


class UsageError(Exception):
    """The words do not name a program."""


class Program:
    """`words` are the arguments of `python`: script.py or -m module or -c code, then those of the program."""

    def __init__(self, words: Sequence[str]) -> None:
        if not words:
            raise UsageError("no program given")
        self._execute: Callable[[str], None] = _execute_script
        self._target, arguments = words[0], list(words[1:])
        flag = words[0][:2]
        if flag in ("-m", "-c"):
            self._execute = _execute_module if flag == "-m" else _execute_code
            self._target = words[0][2:] or (arguments.pop(0) if arguments else "")
            if not self._target:
                raise UsageError(f"{flag} needs a {'module' if flag == '-m' else 'program text'} behind it")
            self._argv = [flag, *arguments]
        else:
            self._target = _find_script(self._target)
            self._argv = [self._target, *arguments]

    @property
    def name(self) -> str:
        """The name for its traces: "train" for train.py."""
        if self._execute is _execute_code:
            return "python"
        if self._execute is _execute_module:
            return self._target
        stem, ending = os.path.splitext(os.path.basename(os.path.realpath(self._target)))
        return stem if ending in (".py", ".pyc", ".zip", ".pyz") else stem + ending

    def run(self) -> None:
        """Returns, or raises, when the main thread of the program has ended. To be called once, as the last action."""
        sys.argv[:] = self._argv
        try:
            self._execute(self._target)
        except SystemExit:
            raise
        except BaseException as error:
            _show_without_frames_of_ours(_frames_of_program(error.__traceback__))
            raise


def _find_script(name: str) -> str:
    """The path of a script. Without a directory it may be an installed command in Python, such as torchrun."""
    if os.path.exists(name):
        return name
    command = shutil.which(name) if os.path.basename(name) == name else None
    if command is None:
        raise UsageError(f"cannot open '{name}': no such file")
    with open(command, "rb") as file:
        start = file.read(1024)
    if start.startswith(b"#!") and b"python" in b"".join(start.splitlines()[:3]):  # a long path is in the third line
        return command
    if name.startswith("python"):
        raise UsageError(f"name the program alone, without '{name}'")
    raise UsageError(f"'{command}' is not a Python program")


def _frames_of_program(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code not in _OUTERMOST:
        traceback = traceback.tb_next
    return traceback.tb_next if traceback is not None else None


def _show_without_frames_of_ours(traceback: TracebackType | None) -> None:
    """The exception propagates through our frames to the interpreter, which sets the exit status and calls this
    hook."""
    hook = sys.excepthook  # the program's hook, if it has set one

    def show(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
        hook(kind, error.with_traceback(traceback), traceback)

    sys.excepthook = show


def _execute_script(given_path: str) -> None:
    path = os.path.join(os.getcwd(), given_path)
    if pkgutil.get_importer(path) is not None:  # a directory or an archive that contains a __main__.py
        sys.path.insert(0, path)
        _fresh_main()
        runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]
        return
    _put_on_path(os.path.dirname(os.path.realpath(path)))
    main = _fresh_main()
    main.__file__ = path
    if sys.version_info < (3, 15):
        main.__dict__["__cached__"] = None
    if path.endswith(".pyc"):
        main.__loader__ = SourcelessFileLoader("__main__", path)
        code = main.__loader__.get_code("__main__")
        assert code is not None
    else:
        main.__loader__ = SourceFileLoader("__main__", path)
        with io.open_code(path) as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def _execute_module(name: str) -> None:
    _put_on_path(os.getcwd())
    _fresh_main()
    # What `python -m` calls: finds the module, sets sys.argv[0] and runs it in `__main__`.
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]


def _execute_code(text: str) -> None:
    _put_on_path("")
    main = _fresh_main()
    main.__loader__ = BuiltinImporter
    exec(compile(text, "<string>", "exec", dont_inherit=True), main.__dict__)


# The program's own frames follow these.
_OUTERMOST = {function.__code__ for function in (_execute_script, _execute_module, _execute_code)}


def _put_on_path(directory: str) -> None:
    if not getattr(sys.flags, "safe_path", False):  # python -P
        sys.path.insert(0, directory)


def _fresh_main() -> ModuleType:
    """The `__main__` module that a program finds before its first line."""
    main = ModuleType("__main__")
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    return main
