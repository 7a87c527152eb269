# SPDX-License-Identifier: Apache-2.0
"""The parts of torch's own profiler that Opstrobe stands in for: its names, its objects and its older formats."""
