# SPDX-License-Identifier: Apache-2.0
"""A bar chart of what recording adds, as SVG: for each kind of event torch.profiler, Opstrobe, and the cost of an empty hook."""

from __future__ import annotations

from html import escape
from pathlib import Path

WIDTH, LABELS, BAR, GAP = 720, 210, 16, 18
SERIES = (("torch.profiler", "#c2571a"), ("Opstrobe", "#3f51b5"), ("empty hook", "#8a8f98"))


def write_chart(path: str, title: str, rows: list[tuple[str, tuple[float, float, float]]]) -> None:
    """Each row: what is recorded, and nanoseconds for each of SERIES."""
    scale = (WIDTH - LABELS - 90) / max(max(values) for _, values in rows)
    height = 62 + len(rows) * (len(SERIES) * BAR + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="22" font-size="14" font-weight="bold" fill="#202124">{escape(title)}</text>',
    ]
    for index, (name, color) in enumerate(SERIES):
        x = 12 + 150 * index
        parts.append(f'<rect x="{x}" y="34" width="12" height="12" fill="{color}"/>')
        parts.append(f'<text x="{x + 18}" y="44" fill="#202124">{escape(name)}</text>')
    y = 62
    for label, values in rows:
        middle = y + len(SERIES) * BAR / 2 + 4
        parts.append(
            f'<text x="{LABELS - 10}" y="{middle:.0f}" text-anchor="end" fill="#202124">{escape(label)}</text>'
        )
        for (_, color), value in zip(SERIES, values):
            parts.append(f'<rect x="{LABELS}" y="{y}" width="{value * scale:.0f}" height="{BAR - 3}" fill="{color}"/>')
            parts.append(
                f'<text x="{LABELS + value * scale + 6:.0f}" y="{y + 11}" fill="#202124">{value:.0f} ns</text>'
            )
            y += BAR
        y += GAP
    parts.append("</svg>\n")
    Path(path).write_text("\n".join(parts))
