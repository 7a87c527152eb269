# SPDX-License-Identifier: Apache-2.0
"""`opstrobe run`: runs a program and records it."""
