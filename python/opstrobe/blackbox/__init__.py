# SPDX-License-Identifier: Apache-2.0
"""The black box: keeps what a process did last if something goes wrong."""
