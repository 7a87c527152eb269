# SPDX-License-Identifier: Apache-2.0
"""The packages of the extra `archive`. Modules import them from here, so that a missing one is explained."""

try:
    import duckdb as duckdb
    import fsspec as fsspec
    import pyarrow as pyarrow
    from pyarrow import parquet as parquet
except ImportError as error:
    raise ImportError(f"archives need {error.name}: pip install 'opstrobe[archive]'", name=error.name) from error
