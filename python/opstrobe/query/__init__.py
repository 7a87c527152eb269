# SPDX-License-Identifier: Apache-2.0
"""Questions in SQL about one trace or many, answered by DuckDB over the columns of the C core."""
