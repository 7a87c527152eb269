# SPDX-License-Identifier: Apache-2.0
"""The packages of the extra `archive`. Modules import them from here, so that a missing one is explained."""

import importlib
from typing import Any


def _explained(error: ImportError) -> ImportError:
    return ImportError(f"archives need {error.name}: pip install 'opstrobe[archive]'", name=error.name)


try:
    import duckdb as duckdb
    import pyarrow as pyarrow
except ImportError as error:
    raise _explained(error) from error

# Functions import these, because importing them takes as long as many queries.
_LATER = {"fsspec": "fsspec", "parquet": "pyarrow.parquet"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    try:
        return importlib.import_module(_LATER[name])
    except ImportError as error:
        raise _explained(error) from error
