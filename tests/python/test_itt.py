# SPDX-License-Identifier: Apache-2.0
"""opstrobe.itt, emit_itt and emit_nvtx compared with torch's."""

import subprocess
import sys

import pytest
import torch

from opstrobe import itt
from opstrobe.compat.emit import emit_itt, emit_nvtx


def test_itt_like_torch():
    theirs = torch.profiler.itt
    assert itt.is_available() == theirs.is_available()
    assert sorted(theirs.__all__) == sorted(itt.__all__)
    if not itt.is_available():
        pytest.skip("this torch has no ITT")
    for calls in (itt, theirs):
        assert calls.mark("m") is None and calls.range_push("r") is None and calls.range_pop() is None
        assert calls.range_pop() is None
        with pytest.raises(TypeError):
            calls.range_push(1)
        with calls.range("{} {x}", 1, x=2):
            pass
        with pytest.raises(IndexError):
            with calls.range("{}"):
                pass


def test_available_without_import():
    code = "import opstrobe; opstrobe.itt.is_available()"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_without_torch():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from opstrobe import itt\n"
        "assert itt.is_available() is False\n"
        "for call in (lambda: itt.mark('x'), lambda: itt.range_push('x'), itt.range_pop, lambda: itt.range('x').__enter__()):\n"
        "    try: call()\n"
        "    except RuntimeError as error: assert 'ITT' in str(error)\n"
        "    else: raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("record_shapes", [False, True])
def test_emit_itt(record_shapes):
    with emit_itt(record_shapes=record_shapes) as emitting:
        assert emitting.entered and torch.autograd._profiler_enabled()
        torch.ones(2, requires_grad=True).sum().backward()
        with pytest.raises(RuntimeError, match="reentrant"):
            emitting.__enter__()
    assert not torch.autograd._profiler_enabled()
    with emit_itt(enabled=False) as nothing:
        assert nothing is None and not torch.autograd._profiler_enabled()


@pytest.mark.skipif(torch.cuda.is_available(), reason="what a torch without CUDA says")
def test_emit_nvtx_without_cuda():
    with pytest.raises((AssertionError, RuntimeError)):
        with emit_nvtx():
            pass
    assert not torch.autograd._profiler_enabled()
    with emit_nvtx(enabled=False) as nothing:
        assert nothing is None
