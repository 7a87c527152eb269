# SPDX-License-Identifier: Apache-2.0
"""Archives: years of traces as Parquet, in a directory or an object store."""

try:
    import duckdb as duckdb
    import fsspec as fsspec
    import pyarrow.parquet as parquet  # noqa: F401
except ImportError as error:
    raise ImportError(f"archives need {error.name}: pip install 'opstrobe[archive]'", name=error.name) from error
