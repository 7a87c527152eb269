# SPDX-License-Identifier: Apache-2.0
"""The files that `make wheel` leaves in dist/, installed with and without a compiler."""

import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

DIST = Path(__file__).resolve().parents[2] / "dist"
PROFILE = """
import sys
import torch, opstrobe
from opstrobe import _core
assert opstrobe.__file__.startswith(sys.prefix), opstrobe.__file__
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
with opstrobe.profile(record_shapes=True, profile_memory=True) as prof:
    model(torch.ones(2, 8)).sum().backward()
names = {event.name for event in prof.events()}
assert {"aten::linear", "aten::relu", "AddmmBackward0"} <= names, names
assert "aten::addmm" in prof.key_averages().table()
prof.export_chrome_trace("trace.json")
with opstrobe.serve("trace.json") as server, opstrobe.TraceApi("trace.json") as api:
    assert str(server.port) in server.url
    assert api.get("/api/v1/traces").status == api.get("/app.js").status == 200
print(_core.bridge_info()["path"])
"""


def only(pattern):
    (path,) = DIST.glob(pattern)
    return path


class Installed:
    """The wheel in a separate environment, which sees the torch of this one."""

    def __init__(self, home, wheel):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
        self.home = home
        (self.package,) = (path / "opstrobe" for path in home.glob("lib/python*/site-packages"))
        seen = home / "seen"
        seen.mkdir()
        for folder in (Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")):
            for item in folder.iterdir():
                if not item.name.startswith("opstrobe") and item.suffix != ".pth" and not (seen / item.name).exists():
                    (seen / item.name).symlink_to(item)
        (self.package.parent / "seen.pth").write_text(f"{seen}\n")
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            home / "bin" / "python",
            "install",
            "-q",
            "--no-index",
            "--no-deps",
        ]
        subprocess.run([*pip, wheel], check=True)

    def run(self, *command, cache, path=None):
        """Exit code, output, errors; `path`: what PATH has in addition to the environment's programs."""
        environment = {k: v for k, v in os.environ.items() if k not in ("CXX", "CC", "PYTHONPATH")}
        environment.update(
            PATH=os.pathsep.join([str(self.home / "bin"), *([path] if path else [])]), XDG_CACHE_HOME=str(cache)
        )
        done = subprocess.run(
            command, cwd=self.home, env=environment, capture_output=True, text=True, timeout=300, errors="replace"
        )
        return done.returncode, done.stdout.strip(), done.stderr

    def profile(self, **where):
        return self.run(self.home / "bin" / "python", "-c", PROFILE, **where)


def without_node(folder, path):
    """A folder with every program of `path` but Node.js and npm."""
    folder.mkdir()
    for program in (
        program for place in path.split(os.pathsep) if Path(place).is_dir() for program in Path(place).iterdir()
    ):
        if program.name not in ("node", "nodejs", "npm", "npx") and not (folder / program.name).is_symlink():
            (folder / program.name).symlink_to(program)
    return str(folder)


@pytest.fixture
def installed(tmp_path):
    return Installed(tmp_path / "venv", only("*.whl"))


def test_names_say_where_it_runs():
    wheel = only("*.whl").name
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert f"-{tag}-{tag}-manylinux_2_" in wheel, wheel


def test_it_needs_nothing_that_is_not_on_every_linux():
    names = zipfile.ZipFile(only("*.whl")).namelist()
    assert not [name for name in names if name.startswith("opstrobe.libs/")], "a library had to be taken along"
    assert not [name for name in names if "test" in name]


def test_it_has_the_manual_page_and_completion(installed):
    share = installed.home / "share"
    page = (share / "man/man1/opstrobe.1").read_text()
    assert page.startswith(".TH OPSTROBE 1") and "\n  \\-\\-pairs" in page
    assert (share / "bash-completion/completions/opstrobe").is_file()


def test_it_has_the_terms_of_what_is_in_it():
    with zipfile.ZipFile(only("*.whl")) as wheel:
        files = {
            name.partition(".dist-info/")[2]: wheel.read(name) for name in wheel.namelist() if ".dist-info/" in name
        }
    metadata = email.message_from_bytes(files["METADATA"])
    assert "LGPL-2.1-or-later" in metadata["License-Expression"] and "MIT" in metadata["License-Expression"]
    terms = {name.removeprefix("licenses/") for name in files if name.startswith("licenses/")}
    assert terms == set(metadata.get_all("License-File"))
    assert b"GNU LESSER GENERAL PUBLIC LICENSE" in files["licenses/libmicrohttpd/COPYING"]
    assert b"pip install ." in files["licenses/libmicrohttpd/RELINKING"]

    bill = json.loads(files["sboms/opstrobe.cdx.json"])
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(files["sboms/opstrobe.cdx.json"].decode())
    assert error is None and bill["specVersion"] == "1.6", error
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", metadata["Version"])
    parts = {part["name"]: part for part in bill["components"]}
    assert set(parts) == {
        "libmicrohttpd",
        "libzstd",
        "preact",
        "@preact/signals",
        "@preact/signals-core",
        "uplot",
        "highlight.js",
    }
    assert bill["dependencies"][0]["dependsOn"] == [part["bom-ref"] for part in bill["components"]]
    for name, part in parts.items():
        assert part["licenses"] and part["purl"].endswith("@" + part["version"]), part
        assert any(file.startswith(f"{name}/") for file in terms), f"no terms of {name}"


def test_it_checks_itself_as_it_runs():
    """The compiler's guards are in: those of stacks and of the C library's functions, and no table to write to."""
    with zipfile.ZipFile(only("*.whl")) as wheel, tempfile.TemporaryDirectory() as folder:
        for name in (
            name for name in wheel.namelist() if re.search(r"opstrobe/_\w+\.cpython.*\.so$|/scripts/opstrobe$", name)
        ):
            path = wheel.extract(name, folder)
            found = subprocess.check_output(["readelf", "-W", "--dyn-syms", "--dynamic", "--segments", path], text=True)
            for mark in ("__stack_chk_fail", "__memcpy_chk", "GNU_RELRO", "NOW"):
                assert mark in found, (name, mark)


def test_it_profiles_without_a_compiler(installed, tmp_path):
    assert shutil.which("c++", path=str(installed.home / "bin")) is None
    code, bridge, errors = installed.profile(cache=tmp_path / "cache")
    assert code == 0, errors
    assert Path(bridge).parent == installed.package / "bridge"
    assert not (tmp_path / "cache").exists(), "nothing was compiled"
    assert (installed.home / "trace.json").stat().st_size > 1000

    code, said, errors = installed.run("opstrobe", "doctor", cache=tmp_path / "cache")
    assert code == 0, said + errors
    assert f"{installed.package}/bridge/" in said and "recording works" in said

    code, said, errors = installed.run(
        "opstrobe", "run", "--table", "-c", "import torch; torch.ones(2) + 1", cache=tmp_path / "cache"
    )
    assert code == 0 and "aten::add" in said + errors, said + errors


def test_without_a_bridge_of_its_own_it_compiles_one_once(installed, tmp_path):
    for bridge in installed.package.glob("bridge/*.so"):
        bridge.unlink()
    cache = tmp_path / "cache"

    code, said, errors = installed.profile(cache=cache)
    assert code != 0
    message = errors.strip().splitlines()[-1]
    assert message.startswith(
        "opstrobe.recording.bridge.BridgeError: the torch bridge has to be compiled once for this torch"
    ), errors
    assert "apt-get install g++" in message and "CXX" in message

    code, said, errors = installed.run("opstrobe", "doctor", cache=cache)
    assert code != 0 and "apt-get install g++" in said + errors, said + errors

    code, compiled, errors = installed.profile(cache=cache, path=os.environ["PATH"])
    assert code == 0, errors
    assert cache in Path(compiled).parents

    code, bridge, errors = installed.profile(cache=cache)
    assert (code, bridge) == (0, compiled), errors


def test_the_source_distribution_holds_what_is_needed_to_build(tmp_path):
    sources = list(DIST.glob("*.tar.gz"))
    if not sources:
        assert not (DIST.parent / ".git").exists(), "make wheel packs one from a checkout"
        return
    with tarfile.open(sources[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    path = without_node(tmp_path / "programs", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert not shutil.which("node", path=path) and not shutil.which("npm", path=path)
    environment = {**os.environ, "PATH": path}
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "out", tree]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]

    (wheel,) = (tmp_path / "out").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "opstrobe/bridge/torch_bridge.cpp" in names
    assert not [name for name in names if name.startswith("opstrobe/bridge/torch2")], "no bridge was requested"
    prebuilt = tree / "web" / "prebuilt"
    assert {file.name for file in prebuilt.iterdir()} == {"index.html", "app.js", "app.css", "report.html"}
    assert (prebuilt / "app.js").stat().st_size > 100_000
    (tmp_path / "trace.json").write_text(
        '{"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}'
    )
    command = Installed(tmp_path / "venv", wheel).home / "bin" / "opstrobe"
    subprocess.run([command, "report", "trace.json", "-o", "report.html"], cwd=tmp_path, check=True)
    script = (prebuilt / "report.html").read_text().partition("<!--replies-->")[2]
    assert len(script) > 100_000 and script in (tmp_path / "report.html").read_text(), "not the viewer that was built"
    assert not (tree / "web" / "node_modules").exists()
    assert (tree / "LICENSE").is_file() and (tree / "docs" / "compatibility.md").is_file()
