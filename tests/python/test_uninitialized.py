# SPDX-License-Identifier: Apache-2.0
"""Objects of the extension's types that were made without __init__: whatever is done with one, Python goes on."""

from __future__ import annotations

import subprocess
import sys

from opstrobe import _core, _serve

TYPES = sorted(
    f"{module.__name__}.{name}"
    for module in (_core, _serve)
    for name, kind in vars(module).items()
    if type(kind) is type
)

# Prints what it is about to do, so that a crash says where.
USES = """
import copy, faulthandler, importlib, itertools, os, pickle, signal, sys, threading
import torch
import opstrobe
from opstrobe import _serve
from opstrobe.recording import bridge

faulthandler.enable()
bridge.load()
os.chdir(sys.argv[1])

def attempt(what, use, *arguments):
    print(what, flush=True)
    try:
        return use(*arguments)
    except Exception as error:
        return None

def make(kind):
    return kind.__new__(kind)

def derive(kind):
    return type("Derived", (kind,), {"__init__": lambda self: None})()

arguments = [(), (None,), (1,), (0,), ("x",), (torch.ones(2),), (b"x",), ([],), (lambda *a: None,)]
arguments += [("name", torch.ones(2), 1), ("x", None), (torch.optim.SGD([torch.ones(2)]), (), {}), (None, None, None)]
def try_all(kind):
    tries = 0
    for maker in (make, derive):
        if attempt(f"{maker.__name__}", maker, kind) is None:
            continue
        for attribute in dir(kind):
            if attribute in ("__class__", "__init_subclass__", "__subclasshook__", "__new__"):
                continue
            item = maker(kind)
            for given in arguments + [(item,), (maker(kind),)]:
                tries += 1
                item = maker(kind)
                value = attempt(f"{attribute}", getattr, item, attribute)
                if callable(value):
                    attempt(f"{attribute}{given!r}"[:200] if item not in given else attribute, value, *given)
            attempt(f"set {attribute}", setattr, maker(kind), attribute, 1)
            attempt(f"delete {attribute}", delattr, maker(kind), attribute)
        for use in (repr, str, list, len, bool, hash, iter, copy.copy, copy.deepcopy, pickle.dumps, vars, bytes, int, float):
            attempt(use.__name__, use, maker(kind))
        attempt("==", lambda: maker(kind) == maker(kind))
        attempt("+", lambda: maker(kind) + maker(kind))
        attempt("[0]", lambda: maker(kind)[0])
        attempt("[:]", lambda: maker(kind)[:])
        attempt("with", lambda: maker(kind).__enter__())
        attempt("init", lambda: maker(kind).__init__())
        attempt("mixed", lambda: opstrobe._core.EventList([maker(kind)]).table())
    return tries

for module, _, name in (name.rpartition(".") for name in sys.argv[2:]):
    print("tried", name, try_all(getattr(importlib.import_module(module), name)))
with opstrobe.profile() as prof:  # nothing was left in a state that a profile would suffer from
    torch.ones(2) + 1
assert sum(event.name == "aten::add" for event in prof.events()) == 1
print("done")
"""


def test_no_use_without_init_crashes(tmp_path):
    command = [sys.executable, "-c", USES, str(tmp_path), *TYPES]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{lines[-2:]}\n{done.stderr[-3000:]}"
    assert lines[-1] == "done"
    tried = dict(line.split()[1:] for line in lines if line.startswith("tried "))
    assert len(tried) == len(TYPES) >= 14
    # The others refuse to be made.
    assert {"EventList", "Session", "TensorWatch", "record_function"} <= {
        name for name in tried if int(tried[name]) > 50
    }
