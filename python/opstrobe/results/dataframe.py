# SPDX-License-Identifier: Apache-2.0
"""The columns of a trace as a `pandas.DataFrame`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
import pandas

if TYPE_CHECKING:
    from opstrobe import _core


def make_dataframe(trace: _core.Trace) -> pandas.DataFrame:
    columns: dict[str, Any] = {}
    for name, (kind, values, valid, texts) in trace.columns().items():
        column: Any = numpy.frombuffer(values, kind)
        missing = None
        if valid is not None:
            bits = numpy.frombuffer(valid, numpy.uint8)
            missing = ~numpy.unpackbits(bits, count=len(column), bitorder="little").astype(bool)
        if texts is not None:
            codes = column.astype(numpy.int32)
            if missing is not None:
                codes[missing] = -1
            column = pandas.Categorical.from_codes(codes, texts)
        elif missing is not None:
            column = pandas.arrays.IntegerArray(column.astype(numpy.int64), missing)
        columns[name] = column
    return pandas.DataFrame(columns)
