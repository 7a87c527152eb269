# SPDX-License-Identifier: Apache-2.0
"""Walking two trees of figures side by side: what the views print, and what a reference file expects."""

import dataclasses

# What a reference file says about itself, and no figure.
ABOUT = {"schema", "trace", "traces", "worker", "workers", "span", "reference", "units", "reference_bugs", "reference_errors",
         "right", "base", "exp"}  # fmt: skip
# Lists whose rows are known by these members, since the plugin left ties unordered.
KEYS = ("name", "input_shape", "operator", "grid", "block", "registers_per_thread", "shared_memory", "module_id")


@dataclasses.dataclass
class Comparison:
    """Counts figures that agree; `wrong` has (path, expected, found) of the others."""

    tolerance: float = 1e-6
    absolute: float = 0.0
    agreed: int = 0
    wrong: list = dataclasses.field(default_factory=list)

    def __add__(self, other):
        return Comparison(agreed=self.agreed + other.agreed, wrong=self.wrong + other.wrong)

    @property
    def total(self):
        return self.agreed + len(self.wrong)

    def figure(self, path, expected, found):
        if self.same(expected, found):
            self.agreed += 1
        else:
            self.wrong.append((path, expected, found))

    def same(self, expected, found):
        numbers = (int, float)
        if isinstance(expected, bool) or not isinstance(expected, numbers) or not isinstance(found, numbers):
            return expected == found
        return abs(expected - found) <= max(self.absolute, self.tolerance * max(abs(expected), 1))

    def walk(self, expected, found, path=""):
        if isinstance(expected, dict) and isinstance(found, dict):
            for key, value in expected.items():
                if path or key not in ABOUT:
                    self.walk(value, found.get(key, "missing"), f"{path}.{key}" if path else key)
            if path:
                for key in found.keys() - expected.keys():
                    if not isinstance(found[key], (dict, list)) or found[key]:
                        self.extra(path, key, found[key])
        elif isinstance(expected, list) and isinstance(found, list):
            self.lists(expected, found, path)
        else:
            self.figure(path, expected, found)

    def extra(self, path, key, value):
        """Members beyond the reference's are welcome where the reference has fixed names, not where names are data."""
        if path.endswith(("per_operator", "latency_per_step", "peaks", "stats.rows", "events", "devices")):
            self.wrong.append((f"{path}.{key}", "nothing", value))

    def lists(self, expected, found, path):
        if len(expected) != len(found):
            self.wrong.append((f"{path}.length", len(expected), len(found)))
        if expected and isinstance(expected[0], dict) and "name" in expected[0] and "largest" not in path:
            by_key = {}
            for row in found:
                by_key.setdefault(self.key(row, expected[0]), []).append(row)
            for row in expected:
                rows = by_key.get(self.key(row, expected[0])) or ["missing"]
                self.walk(row, rows.pop(0), f"{path}[{row['name'][:50]}]")
        else:
            for i, (one, other) in enumerate(zip(expected, found, strict=False)):
                self.walk(one, other, f"{path}[{i}]")

    @staticmethod
    def key(row, like):
        return tuple(row.get(key) for key in KEYS if key in like)
