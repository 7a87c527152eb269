# SPDX-License-Identifier: Apache-2.0
"""The build backend: meson-python, with a plain editable install.

meson-python's own editable install runs ninja at every import. The ninja that pip's build isolation fetched is gone by
then, so `pip install -e .` would leave a package that cannot be imported. This backend puts `python/` on the path and the
compiled module next to its Python files; after a change in C, run `pip install -e .` again.
"""

import base64
import hashlib
import pathlib
import tempfile
import zipfile

import mesonpy
from mesonpy import *  # noqa: F403  (the hooks that stay as they are)

PACKAGE_PARENT = pathlib.Path(__file__).resolve().parent.parent / "python"


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as scratch:
        name = mesonpy.build_wheel(scratch, config_settings, metadata_directory)
        with (
            zipfile.ZipFile(pathlib.Path(scratch, name)) as built,
            zipfile.ZipFile(pathlib.Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as editable,
        ):
            _rewrite(built, editable)
    return name


def _rewrite(built, editable):
    """Keeps metadata and scripts, moves the compiled module to the source tree; the path file provides the rest."""
    record = []

    def add(entry, data):
        editable.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{_name(entry)},sha256={digest},{len(data)}\n")

    record_name = None
    for entry in built.infolist():
        if entry.filename.endswith(".dist-info/RECORD"):
            record_name = entry.filename
        elif not entry.filename.startswith("opstrobe/"):
            add(entry, built.read(entry))
        elif entry.filename.endswith((".so", "/native-stacks")):
            _replace(PACKAGE_PARENT / entry.filename, built.read(entry))
    add("opstrobe-editable.pth", f"{PACKAGE_PARENT}\n".encode())
    editable.writestr(record_name, "".join(record) + f"{record_name},,\n")


def _name(entry):
    return entry.filename if isinstance(entry, zipfile.ZipInfo) else entry


def _replace(path, data):
    """A process may have the old file mapped: never write into it."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(data)
    fresh.chmod(0o755)
    fresh.replace(path)
