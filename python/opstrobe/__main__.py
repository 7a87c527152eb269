# SPDX-License-Identifier: Apache-2.0
"""`python -m opstrobe …`: the command, with this Python; also where the directory of installed scripts is not on the PATH."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys


def _find_command() -> str | None:
    """Returns the executable that was installed with this package, or else the one next to Python or on the PATH."""
    try:
        files = importlib.metadata.files("opstrobe") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    installed = [str(file.locate()) for file in files if file.name == "opstrobe" and file.parent.name == "bin"]
    searched = [*map(os.path.dirname, installed), os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]
    return shutil.which("opstrobe", path=os.pathsep.join(searched))


def main() -> None:
    command = _find_command()
    if command is None:
        sys.exit("opstrobe: the command 'opstrobe' is not installed with this package: reinstall it")
    environment = {**os.environ, "OPSTROBE_PYTHON": sys.executable}
    os.execve(command, ["opstrobe", *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
