# SPDX-License-Identifier: Apache-2.0
"""The results of `opstrobe prove` as text, as JSON, and as the metadata of a trace."""

from __future__ import annotations

import dataclasses
import json

from opstrobe._core import format_change, format_duration, format_percent
from opstrobe.proving.fixes import FIXES
from opstrobe.proving.plan import Gain, Sameness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@dataclasses.dataclass(frozen=True)
class Proof:
    """`outcome` is "measured", "refused", "failed" or "not measured"; `reason` explains the latter three."""

    fix: str
    outcome: str
    reason: str | None = None
    gain: Gain | None = None
    results: Sameness | None = None
    block: int | None = None  # number of steps; None: runs alternated

    def members(self) -> dict[str, Any]:
        fix = FIXES[self.fix]
        gain, results = self.gain, self.results
        return {
            "fix": self.fix,
            "about": fix.about,
            "findings": list(fix.findings),
            "outcome": self.outcome,
            "reason": self.reason,
            "gain_percent": gain and gain.percent,
            "gain_lower_percent": gain and gain.lower_percent,
            "gain_upper_percent": gain and gain.upper_percent,
            "gain_ms_per_step": gain and gain.ms_per_step,
            "pairs": gain and gain.pairs,
            "steps_in_block": self.block,
            "results": results and results.kind,
            "relative_difference": results and results.relative_difference,
        }


def by_finding(proofs: Sequence[Proof]) -> dict[str, dict[str, Any]]:
    """The proof that advice shows with each finding: the best of its fixes that leave the results unchanged, else any
    measured one."""
    found: dict[str, Proof] = {}
    for proof in sorted(proofs, key=lambda proof: proof.gain.percent if proof.gain else 0.0):
        if proof.gain is None or proof.results is None:
            continue
        for finding in FIXES[proof.fix].findings:
            if finding not in found or proof.results.kind != "changed":
                found[finding] = proof
    names = ("fix", "gain_percent", "gain_lower_percent", "gain_upper_percent", "gain_ms_per_step", "results")
    return {finding: {name: proof.members()[name] for name in names} for finding, proof in found.items()}


def _without_fix(findings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    fixable = {finding for fix in FIXES.values() for finding in fix.findings}
    return [finding for finding in findings if finding["id"] not in fixable]


def as_json(
    proofs: Sequence[Proof], findings: Sequence[dict[str, Any]], usual: dict[str, Any], trace: str | None
) -> dict[str, Any]:
    return {
        "fixes": [proof.members() for proof in proofs],
        "findings_without_fix": [finding["id"] for finding in _without_fix(findings)],
        "steps": usual["steps"],
        "trace": trace,
    }


def _gain_text(gain: Gain) -> str:
    if gain.sign:
        does = "saves" if gain.sign > 0 else "COSTS"
        text = f"{does} {format_percent(abs(gain.percent))} of a step, {format_duration(abs(gain.ms_per_step) * 1e6)}"
    else:
        text = f"no difference found, {format_change(gain.percent)} of a step"
    return f"{text} (99.9 % interval: {format_change(gain.lower_percent)} to {format_change(gain.upper_percent)}"


def _proof_text(proof: Proof, findings: Sequence[dict[str, Any]]) -> str:
    fix = FIXES[proof.fix]
    about = ", ".join(finding["title"] for finding in findings if finding["id"] in fix.findings)
    lines = [f"{proof.fix}: {fix.about}"]
    if about:
        lines.append(f"   finding: {about}")
    if proof.gain is None or proof.results is None:
        lines.append(f"   {proof.outcome}: {proof.reason}")
    else:
        of = "runs" if proof.block is None else f"blocks of {proof.block} steps"
        lines.append(f"   {_gain_text(proof.gain)}, {proof.gain.pairs} pairs of {of})")
        predicted = [
            finding["predicted_gain_percent"]
            for finding in findings
            if finding["id"] in fix.findings and finding["predicted_gain_percent"]
        ]
        if predicted:
            lines.append(f"   predicted: {format_percent(sum(predicted))}")
        lines.append(f"   results: {proof.results.text}")
    return "\n".join(lines) + "\n"


def as_text(proofs: Sequence[Proof], findings: Sequence[dict[str, Any]], trace: str | None) -> str:
    parts = [_proof_text(proof, findings) for proof in proofs]
    others = [finding["title"] for finding in _without_fix(findings)]
    if not proofs:
        parts.append("No finding has a fix that can be applied from outside\n" if findings else "No findings\n")
    if others:
        parts.append(
            "Findings without a fix that can be applied from outside:\n" + "".join(f"   {title}\n" for title in others)
        )
    if trace:
        parts.append(f"wrote {trace}: 'opstrobe advise' shows what was measured\n")
    return "\n".join(parts)


def fixes_text() -> str:
    lines = []
    for fix in FIXES.values():
        results = "results equal bit for bit" if fix.exact else "results equal within a tolerance"
        alternates = "runs" if fix.per_run else "steps"
        lines.append(
            f"{fix.name}\n   {fix.about}\n   findings: {', '.join(fix.findings) or 'none'}; alternate {alternates}; {results}\n"
        )
    return "".join(lines)


def fixes_json() -> str:
    return (
        json.dumps(
            [
                {
                    "fix": fix.name,
                    "about": fix.about,
                    "findings": list(fix.findings),
                    "alternates": "runs" if fix.per_run else "steps",
                    "results": "equal" if fix.exact else "close",
                }
                for fix in FIXES.values()
            ],
            indent=1,
        )
        + "\n"
    )
