# SPDX-License-Identifier: Apache-2.0
"""Profiles and advice in notebooks: HTML without script, in the notebook's own colours."""

from __future__ import annotations

import html

from opstrobe._core import format_duration, format_percent
from opstrobe.results.library_line import library_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from opstrobe.profiler import _KinetoProfile

_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops")
_TOP_ROWS = 10
_TOP_FINDINGS = 10
_BAR_WIDTH = 60
_SEVERITY_COLOURS = {"high": "#d0453b", "medium": "#c98500", "low": "#4a86cf"}

_ADVICE_STYLE = (
    "<style>.opstrobe-advice{font-size:13px;line-height:1.45}"
    ".opstrobe-advice ol{padding-left:2em;margin:4px 0}.opstrobe-advice li{margin:6px 0}"
    ".opstrobe-advice code{font-size:12px;background:none;color:inherit}"
    ".opstrobe-advice pre{font-size:12px;margin:4px 0;padding:6px 10px;border-left:3px solid #8886;background:none;color:inherit;"
    "white-space:pre-wrap}"
    ".opstrobe-advice svg{vertical-align:middle;margin:0 6px;max-width:none!important}</style>"
)


def _text(value: object) -> str:
    """Escapes any text. Lone surrogates are spelled out, because pages cannot contain them."""
    return html.escape(str(value).encode("utf-8", "backslashreplace").decode())


def _bar(percent: float, colour: str) -> str:
    width = _BAR_WIDTH * min(max(percent, 0.0), 100.0) / 100
    return (
        f'<svg width="{_BAR_WIDTH}" height="8" aria-hidden="true">'
        f'<rect width="{_BAR_WIDTH}" height="8" fill="currentColor" opacity=".15"/>'
        f'<rect width="{width:.1f}" height="8" fill="{colour}"/></svg>'
    )


def _paragraphs(advice: str) -> str:
    """Formats text, with a program after an empty line."""
    text, _, program = advice.partition("\n\n")
    return _text(text) + (f"<pre>{_text(program)}</pre>" if program else "")


def _finding(finding: Mapping[str, Any]) -> str:
    percent = finding["predicted_gain_percent"] or 0.0
    colour = _SEVERITY_COLOURS.get(finding["severity"], "currentColor")
    bound = _text(finding["predicted_gain_bound"])
    warning = f" ({_text(finding['predicted_gain_warning'])})" if finding.get("predicted_gain_warning") else ""
    interval = f", {_text(finding['predicted_gain_interval'])}" if finding.get("predicted_gain_interval") else ""
    gain = (
        f"{_bar(percent, colour)}{bound} {format_percent(percent)} of a step{interval}{warning}" if percent > 0 else ""
    )
    measured = finding.get("measured")
    if measured:
        gain += f" (measured: {format_percent(measured['gain_percent'])}, {format_percent(measured['gain_lower_percent'])} to {format_percent(measured['gain_upper_percent'])})"
    places = "".join(
        f" <code>{_text(place['file'])}:{_text(place['line'])}</code>{_through(place)}"
        for place in finding["where"][:3]
        if place["file"]
    )
    return (
        f"<li><b>{_text(finding['title'])}</b>{gain}{places}<br>"
        f"{_text(finding['evidence'])}<details><summary>What to do</summary>{_paragraphs(finding['advice'])}"
        f"<p>{_text(finding['explanation'])}</p></details></li>"
    )


def _through(place: Mapping[str, Any]) -> str:
    """The lines of libraries that a line calls."""
    text = ", ".join(f"<code>{_text(library_line(line))}</code>" for line in place["through"])
    return f" through {text}" if text else ""


def _not_explained(rest: Mapping[str, Any] | None) -> str:
    if not rest:
        return ""
    lines = ""
    for line in rest["lines"]:
        place = f"{line['file']}:{line['line']}" if line["file"] else line["module"] or line["operator"] or ""
        lines += f"<p><code>{_text(place)}</code> {_text(line['text'])}</p>"
    return f"<details><summary>{_text(rest['title'])}</summary>{lines}{_text(rest['hint'] or '')}</details>"


class Advice(dict[str, "Any"]):
    """The result of `advise()`: a dict, which notebooks display as a list."""

    def _repr_html_(self) -> str:
        findings = self["findings"]
        if not findings:
            rest = _not_explained(self["not_explained"])
            return f'<div class="opstrobe-advice">{_text(self["summary"])}.{rest}</div>'
        more = len(findings) - _TOP_FINDINGS
        return (
            f'<div class="opstrobe-advice">{_ADVICE_STYLE}<ol>'
            + "".join(map(_finding, findings[:_TOP_FINDINGS]))
            + "</ol>"
            + (f"<p>and {more} more</p>" if more > 0 else "")
            + _not_explained(self["not_explained"])
            + "</div>"
        )


def profile_html(profile: _KinetoProfile, row_limit: int = _TOP_ROWS) -> str:
    """Summarises a profile: how much was recorded, and the operators and ranges with most time. Python functions are
    omitted, since those of the notebook kernel's threads, which only wait, would come first."""
    recording = profile.profiler
    trace = None if recording is None else recording.whole_trace
    if recording is None or trace is None:
        state = "records at this moment" if recording is not None and recording.running else "has recorded nothing"
        return f"<div>This profile {state}.</div>"
    flags = [flag for flag in _FLAGS if getattr(profile, flag)]
    said = [
        f"{trace.event_count:,} events",
        format_duration(trace.stop_ns - trace.start_ns),
        *flags,
        *([f"<b>{trace.lost:,} records lost</b>"] if trace.lost else []),
    ]
    table = "" if recording.trace_only else profile.key_averages(include_python_functions=False)._html(row_limit)
    return (
        f'<div style="font-size:13px"><b>Profile</b>: {", ".join(said)}. '
        "<code>.show()</code> opens the viewer, <code>.advise()</code> says what to change.</div>" + table
    )
