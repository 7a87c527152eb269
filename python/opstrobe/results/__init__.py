# SPDX-License-Identifier: Apache-2.0
"""What a finished recording or a trace file shows."""
