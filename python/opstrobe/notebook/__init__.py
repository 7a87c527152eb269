# SPDX-License-Identifier: Apache-2.0
"""The viewer and tables in notebooks, and IPython magics."""
