# SPDX-License-Identifier: Apache-2.0
"""Replacements for parts of torch's own profiler: its names, its objects and its older formats."""
