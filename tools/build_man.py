#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the manual page of the command, with the options of the commands that are implemented in Python.

    build_man.py COMMAND PACKAGE EXTENSION...

The page is `opstrobe --man`, which asks each command for its --help. Commands in Python need their package, which is not assembled before
it is installed: the extension modules are copied into a copy of it.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def main(command: str, package: str, *extensions: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "opstrobe")
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        for extension in extensions:
            shutil.copy(extension, copy)
        environment = os.environ | {"OPSTROBE_PYTHON": sys.executable, "PYTHONPATH": folder, "COLUMNS": "88"}
        return subprocess.run([command, "--man"], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
