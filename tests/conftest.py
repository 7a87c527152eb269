# SPDX-License-Identifier: Apache-2.0
"""Which tests are for which torch."""

import importlib.metadata


def _torch_version():
    try:
        major, minor, *_ = importlib.metadata.version("torch").split(".")
    except importlib.metadata.PackageNotFoundError:
        return None
    return int(major), int(minor)


def pytest_collection_modifyitems(config, items):
    """Leaves out what compares with the torch.profiler we follow where torch is another: `torch_like("2.13")` is for that
    version, `torch_like("2.13", "2.15")` for all from the first to the second."""
    version = _torch_version()
    kept, left_out = [], []
    for item in items:
        mark = item.get_closest_marker("torch_like")
        bounds = [tuple(map(int, text.split("."))) for text in mark.args] if mark else []
        fits = not bounds or version is None or bounds[0] <= version <= bounds[-1]
        (kept if fits else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
