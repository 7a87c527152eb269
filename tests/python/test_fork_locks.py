# SPDX-License-Identifier: Apache-2.0
"""Children that are forked while another thread holds the lock of torch's callbacks."""

import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

# A thread stops within the lock, which it takes because it is new and a session of all threads has global callbacks.
PROGRAM = """
import ctypes, os, signal, sys, threading, time
import torch, opstrobe
from opstrobe import _core
from opstrobe.recording import bridge
helper = ctypes.CDLL(sys.argv[1])
bridge.load()
session = _core.Session(all_threads=True)
session.start()

def stop():
    helper.stop_in_copy()
    torch.ones(2)

threading.Thread(target=stop, daemon=True).start()
while not helper.has_stopped():
    time.sleep(0.01)
child = os.fork()
if child == 0:
    signal.alarm(60)
    for _ in range(2):
        try:
            with opstrobe.profile():
                pass
        except RuntimeError as error:
            print(error, flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""


def test_a_child_that_cannot_take_the_lock_says_so(tmp_path):
    from torch.utils import cpp_extension

    library = tmp_path / "libheld_lock.so"
    source = pathlib.Path(__file__).with_name("held_lock.cpp")
    flags = ["-std=c++20", "-shared", "-fPIC", *(f"-isystem{path}" for path in cpp_extension.include_paths())]
    home = cpp_extension.library_paths()[0]
    libraries = [f"-L{home}", f"-Wl,-rpath,{home}", "-ltorch_cpu", "-lc10"]
    subprocess.run(["c++", *flags, source, "-o", library, *libraries], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(library)], capture_output=True, text=True, env=environment, timeout=300
    )
    reason = "this process was forked while another thread held a lock of torch's; profile in a process that is spawned"
    assert done.stdout.splitlines() == [f"cannot start a session: {reason}"] * 2 + ["0"], done.stderr


CHILDREN = """
import os, signal, threading
import torch, opstrobe

def train():
    x = torch.ones(4, requires_grad=True)
    while running:
        ((x * x).sum() + x.sum()).backward()

running = True
thread = threading.Thread(target=train)
thread.start()
failed = 0
for turn in range(30):
    with opstrobe.profile(experimental_config=opstrobe._ExperimentalConfig(profile_all_threads=turn % 2 == 0)):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                with opstrobe.profile() as prof:
                    torch.ones(2) + 1
                os._exit(sum(event.name == "aten::add" for event in prof.events()) != 1)
            except RuntimeError as error:
                os._exit(0 if "held a lock of torch's" in str(error) else 2)
    failed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
running = False
thread.join()
print(failed)
"""


def test_children_profile_or_say_why_not():
    done = subprocess.run([sys.executable, "-c", CHILDREN], capture_output=True, text=True, timeout=300)
    assert done.stdout == "0\n", done.stderr


# Another thread makes the first profile, and takes long to import the module that the first argument names.
FIRST_PROFILE = """
import importlib.abc, os, signal, sys, threading, time
import torch, opstrobe

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, *_):
        if name == "opstrobe.recording." + sys.argv[1]:
            importing.set()
            time.sleep(1)

def profile():
    with opstrobe.profile(profile_memory=True):
        torch.ones(2)

importing = threading.Event()
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=profile)
thread.start()
assert importing.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(30)
    profile()
    os._exit(0)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.parametrize("module", ["session_config", "bridge", "tensors", "roof", "source"])
def test_a_child_forked_while_the_first_profile_imports_can_profile(module):
    done = subprocess.run([sys.executable, "-c", FIRST_PROFILE, module], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr
