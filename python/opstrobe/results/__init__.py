# SPDX-License-Identifier: Apache-2.0
"""The results of a finished recording or of a trace file."""
