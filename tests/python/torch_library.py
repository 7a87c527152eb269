# SPDX-License-Identifier: Apache-2.0
"""Libraries in C++ that register devices with torch in place of real ones."""

import pathlib
import subprocess


def build(source, folder):
    """Compiles a file next to this one against torch's headers; returns the library's path."""
    import torch
    from torch.utils import cpp_extension

    built = folder / f"lib{pathlib.Path(source).stem}.so"
    command = ["c++", "-std=c++20", "-shared", "-fPIC"]
    command += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    command += [f"-isystem{path}" for path in cpp_extension.include_paths()]
    command += [pathlib.Path(__file__).with_name(source), "-o", built]
    command += [f"-L{cpp_extension.library_paths()[0]}", "-ltorch_cpu", "-lc10"]
    subprocess.run(command, check=True)
    return built
