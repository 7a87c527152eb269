# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from trace_processor import TraceProcessor  # noqa: E402


@pytest.fixture
def perfetto(pytestconfig):
    """What Perfetto's trace processor has to complain about in a trace file."""

    def import_errors(path):
        processor = TraceProcessor(pytestconfig.cache.mkdir("trace-processor"))
        processor.load(path)
        return processor.import_errors()

    return import_errors
