# SPDX-License-Identifier: Apache-2.0
"""Adds to a wheel the notices for third-party parts in it: their licences, and a list of them (CycloneDX, PEP 770).

    wheel_notices.py WHEEL LIBRARY=FOLDER=LICENCE...

The libraries are those that are linked into it, each with the folder of its source; the packages of the viewer are those that
the lock file of web/ names. Everything comes from files that the wheel was built from: the same build gives the same list.
"""

import base64
import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

WEB = Path(__file__).resolve().parent.parent / "web"
TERMS = re.compile(r"(COPYING|LICEN[CS]E)(\.(md|txt))?")
RELINKING = """
libmicrohttpd is linked into Opstrobe's server and command. To use a changed one, install it with its headers and run
`pip install .` in Opstrobe's source distribution: that links the installed library.
"""


def linked(name, folder, licence):
    version = subprocess.check_output(["pkg-config", "--modversion", name], text=True).strip()
    return component(name, version, licence, f"pkg:generic/{name}@{version}"), Path(folder)


def packages():
    for path, package in json.loads((WEB / "package-lock.json").read_text())["packages"].items():
        if path and not package.get("dev"):
            name = path.removeprefix("node_modules/")
            purl = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
            kind, digest = package["integrity"].split("-", 1)
            assert kind == "sha512", package
            entry = component(name, package["version"], package["license"], purl)
            entry["hashes"] = [{"alg": "SHA-512", "content": base64.b64decode(digest).hex()}]
            yield entry, WEB / path


def component(name, version, licence, purl):
    licences = [{"expression": licence} if " " in licence else {"license": {"id": licence}}]
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "licenses": licences, "purl": purl}


def bill(name, version, components):
    purl = f"pkg:pypi/{name}@{version}"
    itself = {**component(name, version, "Apache-2.0", purl), "type": "application"}
    depends = [{"ref": purl, "dependsOn": [entry["bom-ref"] for entry in components]}]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": itself},
        "components": components,
        "dependencies": depends,
    }


def rewrite(wheel, added, licences):
    """Returns the wheel with additional files in its .dist-info, listed in its record and metadata."""
    fresh = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as new:
        (record,) = (name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        info = record.removesuffix("RECORD")
        lines = []

        def add(entry, data):
            new.writestr(entry, data, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{entry.filename},sha256={digest},{len(data)}\n")

        for entry in old.infolist():
            if entry.is_dir() or entry.filename == record:
                continue
            data = old.read(entry)
            if entry.filename == f"{info}METADATA":
                data = with_licences(data.decode(), licences, added).encode()
            add(entry, data)
        for name, data in added.items():
            add(in_same_folder(old.getinfo(record), info + name), data)
        new.writestr(old.getinfo(record), "".join(lines) + f"{record},,\n")
    fresh.replace(wheel)


def in_same_folder(other, name):
    entry = zipfile.ZipInfo(name, other.date_time)
    entry.external_attr = other.external_attr
    return entry


def with_licences(metadata, licences, added):
    expression = " AND ".join(f"({text})" if " " in text else text for text in licences)
    files = "".join(
        f"License-File: {name.removeprefix('licenses/')}\n" for name in added if name.startswith("licenses/")
    )
    head, blank, body = metadata.partition("\n\n")
    head, count = re.subn(r"(?m)^License-Expression: .*$", f"License-Expression: {expression}", head)
    assert count == 1, "the metadata has no licence expression"
    return head + "\n" + files.rstrip("\n") + blank + body


def main(path, *libraries):
    wheel = Path(path)
    name, version = wheel.name.split("-")[:2]
    parts = [*(linked(*library.split("=")) for library in libraries), *packages()]
    added = {}
    for entry, folder in parts:
        terms = [file for file in sorted(folder.iterdir()) if TERMS.fullmatch(file.name)]
        assert terms, f"no licence in {folder}"
        for file in terms:
            added[f"licenses/{entry['name']}/{file.name}"] = file.read_bytes()
    added["licenses/libmicrohttpd/RELINKING"] = RELINKING.lstrip().encode()
    components = [entry for entry, _ in parts]
    added["sboms/opstrobe.cdx.json"] = json.dumps(bill(name, version, components), indent=1).encode()
    licences = ["Apache-2.0"]
    for entry in components:
        (terms,) = entry["licenses"]
        licence = terms.get("expression") or terms["license"]["id"]
        if licence not in licences:
            licences.append(licence)
    rewrite(wheel, added, licences)


if __name__ == "__main__":
    main(*sys.argv[1:])
