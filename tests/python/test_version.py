# SPDX-License-Identifier: Apache-2.0
"""The package, its metadata and the command have the version that the core was built as."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path

import opstrobe


def test_there_is_one_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", opstrobe.__version__)
    assert importlib.metadata.version("opstrobe") == opstrobe.__version__
    command = shutil.which("opstrobe", path=str(Path(sys.executable).parent))
    assert command, "the package's command is not next to its Python"
    printed = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert printed == f"opstrobe {opstrobe.__version__}\n"
