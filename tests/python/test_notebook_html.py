# SPDX-License-Identifier: Apache-2.0
"""What notebooks show of profiles, lists of events and advice. tests/notebook shows them in a browser."""

import html.parser
import pathlib
import pickle
import re

import pytest
import torch

import opstrobe
from opstrobe import _core

TRAIN = pathlib.Path(__file__).resolve().parents[2] / "web" / "tests" / "traces" / "train.pt.trace.json.gz"
HOSTILE = "</td></table><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\udc80\x00\u2028"


class Markup(html.parser.HTMLParser):
    """The elements of a fragment, which have to fit into each other, and its text."""

    VOID = {"rect", "br"}

    def __init__(self, fragment):
        super().__init__()
        self.open, self.tags, self.attributes, self.text, self.cells = [], [], [], "", []
        fragment.encode("utf-8")
        self.feed(fragment)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            assert "url(" not in data and "@import" not in data
            return
        self.text += data
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data


def check_harmless(fragment):
    markup = Markup(fragment)
    assert not {"script", "img", "iframe", "link", "object", "form"} & set(markup.tags)
    assert not [name for name in markup.attributes if name.startswith("on") or name in ("src", "href")]
    return markup


@pytest.fixture(scope="module")
def recorded():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    with opstrobe.profile(record_shapes=True, with_stack=True) as prof:
        for number in range(4):
            with opstrobe.record_function(f"ProfilerStep#{number}"), opstrobe.record_function(HOSTILE):
                model(torch.ones(2, 8)).sum().item()
    return prof


def test_averages_are_a_table_with_bars(recorded):
    averages = recorded.key_averages()
    markup = check_harmless(averages._repr_html_())
    assert markup.tags.count("tr") == 21 and f"20 of {len(averages)} rows" in markup.text
    titles = [cell for cell in markup.cells if cell in averages.table()][:7]
    assert titles[:3] == ["Name", "Self CPU %", "Self CPU"]
    width = markup.tags.count("th") - 20
    rows = [markup.cells[at : at + width] for at in range(width, len(markup.cells), width)]
    shares = [float(row[1].rstrip("%")) for row in rows]
    assert shares == sorted(shares, reverse=True), "by own time"
    assert markup.tags.count("rect") == 2 * len(rows)
    # The figures are those of the table.
    said = averages.table(sort_by="self_cpu_time_total", max_name_column_width=None)
    for row in rows:
        if HOSTILE[:20] not in row[0]:
            assert re.search(r"\s+".join(map(re.escape, row)), said), row


def test_the_order_of_a_sorted_list_stays(recorded):
    averages = recorded.key_averages()
    by_time = averages._repr_html_()
    averages[0]  # to look does not change what is shown
    assert averages._repr_html_() == by_time
    averages.sort(key=lambda row: row.count)
    width = Markup(by_time).tags.count("th") - 20
    counts = [int(cell) for cell in Markup(averages._html(row_limit=-1)).cells[2 * width - 1 :: width]]
    assert counts == sorted(counts) and len(counts) == len(averages)


def test_grouped_averages_and_events(recorded):
    grouped = check_harmless(recorded.key_averages(group_by_input_shape=True, group_by_stack_n=3)._repr_html_())
    assert "Input Shapes" in grouped.cells and "Source Location" in grouped.cells
    assert "[[2, 8], [8, 8], [8]]" in grouped.text or "[[8], [2, 8], [8, 8], [], []]" in grouped.text
    check_harmless(recorded.events()._repr_html_())
    events = check_harmless(recorded.events()._html(row_limit=-1))
    assert events.tags.count("tr") == len(recorded.events()) + 1 and "ProfilerStep" in events.text
    assert opstrobe.EventList()._repr_html_() == ""


def test_a_name_is_never_markup(recorded):
    check_harmless(recorded.events()._html(1000))
    markup = check_harmless(recorded.key_averages()._html(1000))
    name = next(cell for cell in markup.cells if cell.startswith("</td>"))
    assert name.startswith(HOSTILE[:50])


def test_a_profile_says_what_it_recorded(recorded):
    markup = check_harmless(recorded._repr_html_())
    assert "record_shapes, with_stack" in markup.text and "10 of" in markup.text and ".show()" in markup.text
    assert "has recorded nothing" in opstrobe.profile()._repr_html_()
    with opstrobe.profile() as prof:
        assert "records at this moment" in prof._repr_html_()
    config = opstrobe._ExperimentalConfig(trace_only=True)
    with opstrobe.profile(experimental_config=config) as prof:
        torch.ones(2) + 1
    assert "events" in prof._repr_html_() and "<table" not in prof._repr_html_()


def test_advice_is_a_dict_that_shows_itself():
    advice = opstrobe.read(TRAIN).advise()
    assert isinstance(advice, dict) and advice == dict(advice)
    assert pickle.loads(pickle.dumps(advice)) == advice
    markup = check_harmless(advice._repr_html_())
    assert advice["findings"]
    for finding in advice["findings"]:
        assert finding["title"] in markup.text and finding["evidence"] in markup.text
        if finding["predicted_gain_percent"]:
            gain = (
                f"{finding['predicted_gain_bound']} {_core.format_percent(finding['predicted_gain_percent'])} of a step"
            )
            assert f"{gain}, {finding['predicted_gain_interval']}" in markup.text
    assert markup.tags.count("li") == len(advice["findings"])
    rest = advice["not_explained"]
    assert rest["title"] in markup.text and rest["lines"][0]["text"] in markup.text
    rest["lines"] = [dict(rest["lines"][0], file=HOSTILE, text=HOSTILE)]
    hostile = dict(advice["findings"][0], title=HOSTILE, evidence=HOSTILE, explanation=HOSTILE, advice=HOSTILE)
    through = [{"path": "lightning/loop.py", "line": 12, "function": "run"}]
    advice["findings"] = [dict(hostile, where=[{"file": "train.py", "line": 1, "through": through}])]
    assert "train.py:1 through lightning/loop.py:12 in run" in check_harmless(advice._repr_html_()).text
    hostile["where"] = [{"file": HOSTILE, "line": 1, "through": [{"path": HOSTILE, "line": 2, "function": HOSTILE}]}]
    advice["findings"] = [hostile] * 30
    markup = check_harmless(advice._repr_html_())
    assert markup.tags.count("li") == 10 and "and 20 more" in markup.text
    advice["findings"], advice["summary"] = [], "No problems found (1 of 2 rules applied)"
    assert ">No problems found (1 of 2 rules applied).<" in advice._repr_html_()


def test_advice_on_what_was_recorded_shows_itself_too(recorded):
    advice = recorded.advise()
    markup = check_harmless(advice._repr_html_())
    assert markup.tags.count("li") == len(advice["findings"])


def test_events_made_by_hand_are_shown_as_text():
    from torch.autograd.profiler_util import FunctionEvent

    events = opstrobe.EventList([FunctionEvent(id=1, name="mine", thread=0, start_us=0, end_us=1)])
    assert events._repr_html_() is None
