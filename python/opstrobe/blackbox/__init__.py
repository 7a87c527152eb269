# SPDX-License-Identifier: Apache-2.0
"""The black box: what a process did last, kept when something goes wrong."""
