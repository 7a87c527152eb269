# SPDX-License-Identifier: Apache-2.0
"""Where the tested command is: next to the Python that runs the tests."""

import pathlib
import sys

OPSTROBE = pathlib.Path(sys.executable).parent / "opstrobe"
PYTHON = OPSTROBE.with_name("python3")  # what the command takes for Python
