# SPDX-License-Identifier: Apache-2.0
"""Spark looks for data sources in modules whose names begin with "pyspark_": this one makes the format "opstrobe" known to it."""

import contextlib

# An error here would end the search for other data sources, too.
with contextlib.suppress(ImportError):
    from opstrobe.spark import OpstrobeDataSource as DefaultSource

    __all__ = ["DefaultSource"]
