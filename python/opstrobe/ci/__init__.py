# SPDX-License-Identifier: Apache-2.0
"""Gates for continuous integration: counts of two traces, and times of interleaved runs."""
