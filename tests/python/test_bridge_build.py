# SPDX-License-Identifier: Apache-2.0
"""Finding and building the torch bridge: the cache, what can be missing, several processes at once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from opstrobe import _core  # noqa: E402
from opstrobe.recording import bridge  # noqa: E402

RECORD = """
import torch
from opstrobe import _core
from opstrobe.recording import bridge
bridge.load()
session = _core.Session()
session.start()
torch.ones(2) + 1
assert "aten::add" in [e.name for e in session.stop().function_events()]
print(_core.bridge_info()["path"])
"""


def start(cache, program=RECORD, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(cache), **environment},
    )


def run(cache, program=RECORD, **environment):
    """Exit code, output, errors."""
    process = start(cache, program, **environment)
    out, err = process.communicate(timeout=300)
    return process.returncode, out.strip(), err


# Compiles once for the same arguments, whatever the output is called.
COMPILE_ONCE = """#!/bin/sh
set -e
last=
for word; do
	if [ "$last" = -o ]; then out=$word; else arguments="$arguments $word"; fi
	last=$word
done
made=$0.$(echo "$arguments" | cksum | tr ' ' -)
if [ ! -e "$made" ]; then
	c++ "$@"
	cp "$out" "$made.$$"
	mv "$made.$$" "$made"
fi
cp "$made" "$out"
"""


@pytest.fixture(scope="module", autouse=True)
def compile_once(tmp_path_factory):
    """The tests are about when a bridge is compiled, not about the compiler, which takes ten seconds."""
    compiler = tmp_path_factory.mktemp("compiler") / "c++-once"
    compiler.write_text(COMPILE_ONCE)
    compiler.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", str(compiler))
        yield


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache with a bridge in it."""
    folder = tmp_path_factory.mktemp("cache")
    code, _, err = run(folder)
    assert code == 0, err
    return folder


@pytest.fixture
def copy(cache, tmp_path):
    shutil.copytree(cache, tmp_path / "cache")
    return tmp_path / "cache"


def bridges(cache):
    return sorted(Path(cache).glob("opstrobe/bridge/*.so"))


def test_the_compiler_is_not_a_child_process_of_the_program(tmp_path):
    process = subprocess.run(
        [Path(sys.executable).parent / "opstrobe", "run", "-o", "t.json", "-c", "import torch; torch.ones(2) + 1"],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0 and "compiling the bridge to this torch" in process.stderr
    assert "wrote t.json" in process.stderr and "child process" not in process.stderr


def test_it_is_built_once(cache):
    (built,) = bridges(cache)
    stamp = built.stat()
    code, out, err = run(cache, CXX="/bin/false")
    assert code == 0, err
    assert Path(out) == built
    assert built.stat().st_mtime_ns == stamp.st_mtime_ns
    assert built.stat().st_mode & 0o022 == 0
    assert built.parent.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(shutil.which("readelf") is None, reason="reads the library with readelf")
def test_its_table_of_functions_is_read_only(cache):
    found = subprocess.check_output(["readelf", "-W", "--dynamic", "--segments", *bridges(cache)], text=True)
    assert "GNU_RELRO" in found and "BIND_NOW" in found


def test_its_name_says_what_it_is_for(cache):
    (built,) = bridges(cache)
    assert f"torch{torch.__version__}-" in built.name
    assert sys.implementation.cache_tag in built.name
    assert f"abi{int(torch.compiled_with_cxx11_abi())}" in built.name


def test_what_changes_its_name(monkeypatch):
    def name():
        return bridge._file_name(torch, bridge._sources())

    names = {name()}
    with monkeypatch.context() as patch:
        patch.setattr(torch, "__version__", "2.99.0+test")
        names.add(name())
        assert bridge._standard(torch) == "c++20"
    with monkeypatch.context() as patch:
        other = not torch.compiled_with_cxx11_abi()
        patch.setattr(torch, "compiled_with_cxx11_abi", lambda: other)
        names.add(name())
    with monkeypatch.context() as patch:
        patch.setattr(bridge, "_version", lambda: "99")
        names.add(name())
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda self: b"another source")
        names.add(name())
    assert len(names) == 5
    assert name() in names


def test_several_processes_at_once(tmp_path):
    processes = [start(tmp_path, CXX="") for _ in range(4)]
    results = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, results
    (built,) = bridges(tmp_path)
    assert {out.strip() for out, _ in results} == {str(built)}
    assert not [name for name in os.listdir(built.parent) if name.startswith("tmp")]


def test_a_damaged_bridge_is_made_again(copy):
    (built,) = bridges(copy)
    whole = built.read_bytes()
    for damaged in (b"", whole[:-100]):
        built.write_bytes(damaged)
        code, out, err = run(copy)
        assert code == 0, err
        assert Path(out) == built
        assert built.stat().st_size == len(whole)


def test_a_library_with_another_checksum_is_made_again(copy):
    (built,) = bridges(copy)
    whole = built.read_bytes()
    at = whole.index(b"ops_torch_bridge_get")
    built.write_bytes(whole[:at] + b"X" + whole[at + 1 :])
    code, out, err = run(copy)
    assert code == 0, err
    assert Path(out) == built
    assert built.read_bytes()[at : at + 20] == b"ops_torch_bridge_get"


@pytest.mark.parametrize("what", ["opstrobe/bridge", "opstrobe", ".", "library"])
def test_files_that_others_may_write_are_not_used(copy, what):
    (built,) = bridges(copy)
    place = built if what == "library" else copy / what
    place.chmod(place.stat().st_mode | 0o002)
    code, out, err = run(copy)
    assert code == 0, err
    if what == "library":  # is made again, by the user alone
        assert Path(out) == built and not built.stat().st_mode & 0o022
    else:
        assert not os.path.exists(out)  # it was made for that process
        assert "the cache is not safe" in err and str(place.resolve()) in err


def test_the_directory_is_private_whatever_the_umask(tmp_path):
    code, out, err = run(tmp_path, "import os; os.umask(0)\n" + RECORD)
    assert code == 0, err
    assert os.path.exists(out)
    assert Path(out).stat().st_mode & 0o022 == 0
    assert (tmp_path / "opstrobe").stat().st_mode & 0o077 == 0


def test_a_library_that_is_a_link_is_not_used(copy, tmp_path):
    (built,) = bridges(copy)
    elsewhere = tmp_path / "elsewhere.so"
    built.rename(elsewhere)
    built.symlink_to(elsewhere)
    code, out, err = run(copy)
    assert code == 0, err
    assert Path(out) == built and not built.is_symlink() and elsewhere.exists()


def test_no_lock_is_taken_through_a_link(copy, tmp_path):
    (built,) = bridges(copy)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    built.unlink()
    built.with_suffix(".lock").unlink()
    built.with_suffix(".lock").symlink_to(victim)
    code, _, err = run(copy)
    assert code == 0, err
    assert victim.read_text() == "precious"


def test_what_a_killed_build_left_goes_with_the_next(tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\nkill -9 $PPID\n")
    compiler.chmod(0o755)
    code, _, _ = run(tmp_path / "cache", CXX=str(compiler))
    assert code == -9
    folder = tmp_path / "cache/opstrobe/bridge"
    (left,) = folder.glob("*.so")
    code, out, err = run(tmp_path / "cache")
    assert code == 0, err
    assert not left.exists() and bridges(tmp_path / "cache") == [Path(out)]


HOMELESS = """
import os
for name in ("HOME", "XDG_CACHE_HOME"):
    os.environ.pop(name, None)
import pwd, pathlib
def nobody(uid): raise KeyError(uid)
pwd.getpwuid = nobody
"""


def test_neither_home_nor_a_user(tmp_path):
    code, out, err = run(tmp_path, HOMELESS + RECORD, TMPDIR=str(tmp_path))
    assert code == 0, err
    (built,) = tmp_path.glob("opstrobe-*/bridge/*.so")
    assert Path(out) == built
    code, out, err = run(tmp_path, HOMELESS + RECORD, TMPDIR=str(tmp_path), CXX="/bin/false")
    assert code == 0 and Path(out) == built, err


def test_no_compiler(tmp_path):
    code, _, err = run(tmp_path, CXX="", PATH="/nowhere")
    assert code == 1
    assert "BridgeError" in err and "apt-get install g++" in err and "CXX" in err


def test_a_compiler_that_is_not_there(tmp_path):
    code, _, err = run(tmp_path, CXX="no-such-compiler -O1")
    assert code == 1
    assert "CXX names 'no-such-compiler'" in err


def test_a_compiler_that_fails(tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\necho this went wrong >&2\nexit 3\n")
    compiler.chmod(0o755)
    code, _, err = run(tmp_path / "cache", CXX=str(compiler))
    assert code == 1
    assert "did not compile for torch" in err and "this went wrong" in err
    assert bridges(tmp_path / "cache") == []
    assert not [name for name in os.listdir(tmp_path / "cache/opstrobe/bridge") if name.endswith(".so")]


def test_a_cache_that_cannot_be_written(tmp_path):
    """Then it is built for the one process."""
    (tmp_path / "opstrobe").write_text("a file where the folder should be")
    code, out, err = run(tmp_path)
    assert code == 0, err
    assert not os.path.exists(out)


def test_a_relative_cache_home_is_ignored(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert bridge.cache_directory() == Path.home() / ".cache" / "opstrobe" / "bridge"


def test_a_bridge_of_another_interface(tmp_path):
    source = tmp_path / "other.c"
    source.write_text(
        'static struct { unsigned a, b; const char *v; } x = {77, 1, "2.0"};\n'
        "void *ops_torch_bridge_get(void) { return &x; }\n"
    )
    library = tmp_path / "other.so"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    program = """
import sys, torch
from opstrobe import _core
for path in sys.argv[1:]:
    try:
        _core.load_bridge(path)
    except ImportError as error:
        print(error)
"""
    process = subprocess.run(
        [sys.executable, "-c", program, library, "/no/such.so", torch._C.__file__],
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, third = process.stdout.splitlines()
    assert "another version of opstrobe" in first and "77" in first
    assert "/no/such.so" in second
    assert "is not a torch bridge" in third


def test_loading_is_idempotent():
    bridge.load()
    before = _core.bridge_info()
    _core.load_bridge("/no/such.so")
    bridge.load()
    assert _core.bridge_info() == before
    assert before["torch_version"] == torch.__version__
    with pytest.raises(TypeError):
        _core.load_bridge(3)


def test_info():
    info = bridge.info()
    assert info["torch"] == torch.__version__
    assert info["loaded"] is None or info["loaded"]["torch_version"] == torch.__version__
    assert info["cached"].startswith(info["cache"])
    assert "compiler" in info or "compiler_error" in info


def test_importing_the_package_leaves_torch_alone():
    program = "import sys, opstrobe; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
