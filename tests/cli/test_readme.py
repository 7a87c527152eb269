# SPDX-License-Identifier: Apache-2.0
"""The README: its parts, its links and those of the manual, and its example, which is run."""

import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
if not README.exists():
    pytest.skip("the tests are not in a checkout", allow_module_level=True)


def section(title):
    (found,) = [part for part in re.split(r"^## ", README.read_text(), flags=re.MULTILINE) if part.startswith(title)]
    return found


def test_it_begins_with_a_sentence_an_installation_two_pictures_and_three_bullets():
    head = README.read_text().split("\n## ")[0]
    sentence = head.split("\n\n")[1]
    assert sentence.count(".") == 2 and sentence.endswith(".")  # "torch.profiler" has a dot
    assert head.index("pip install") < head.index("![")
    assert re.findall(r"!\[[^\]]*\]\((.*?)\)", head) == [
        "docs/images/view-overview.png",
        "docs/images/view-timeline.png",
    ]
    assert len(re.findall(r"^- \*\*", head, re.MULTILINE)) == 3


def test_it_has_one_chart_says_whom_it_is_for_and_compares():
    assert re.findall(r"!\[[^\]]*\]\((.*?)\)", section("What recording costs")) == ["docs/images/cost.svg"]
    assert len(re.findall(r"^\| [a-z]", section("What recording costs"), re.MULTILINE)) == 3
    use = section("When to use it")
    assert "Use Opstrobe if" in use and "is not a" in use.replace("\n", " ")
    columns = re.search(r"^\|(.*)\|$", use, re.MULTILINE)[1].split("|")
    assert [column.strip() for column in columns] == [
        "",
        "Opstrobe",
        "torch.profiler",
        "Perfetto",
        "Nsight Systems",
        "HTA",
        "scalene",
    ]
    assert "CUDA" in section("Limits") and "GPU" in use


def anchors(page):
    """The ids of the headings of a page, as GitHub and MkDocs make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = [
        re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    ]
    return {*titles, *re.findall(r'(?:id|name)="([^"]+)"', text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_what_exists(page):
    text = re.sub(r"^(?: {4}|\t).*$|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), target


def pattern_of(lines):
    """What a command prints as a regular expression: any numbers, any line breaks, and anything for "…". Workers may be slower than no
    workers where other programs have the processors, so a change has any sign."""
    text = re.escape(" ".join("\n".join(lines).split()))
    text = re.sub(r"\d(?:[\d.,\\]*\d)?", r"[\\d.,]+", text.replace("…", ".*?"))
    return text.replace(r"\ ", r"\s+").replace("finding", "findings?").replace(r",\s+\-[", r",\s+[+\-][")


def test_its_example_prints_what_it_shows(opstrobe, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    lines = [
        line[4:] for line in section("Find and fix one problem").splitlines() if line.startswith("    ") or not line
    ]
    shown = re.split(r"^\$ opstrobe ", "\n".join(lines), flags=re.MULTILINE)[1:]
    assert len(shown) == 3
    for part in shown:
        words, *printed = part.splitlines()
        done = opstrobe(*words.split(), stderr=subprocess.STDOUT, stdout=subprocess.PIPE, capture_output=False)
        assert done.returncode == 0, done.stdout
        found = re.sub(r";\s+waited\s+for\s+a\s+CPU:\s+[\d.]+\s+%", "", done.stdout)  # on a busy machine
        assert re.search(pattern_of(printed), found, re.DOTALL), (pattern_of(printed), found)
