# SPDX-License-Identifier: Apache-2.0
"""`opstrobe tui`: the views of a trace in a terminal, drawn by Textual. Private, except for the command."""
