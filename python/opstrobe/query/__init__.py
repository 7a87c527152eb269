# SPDX-License-Identifier: Apache-2.0
"""SQL queries about one trace or many, which DuckDB runs on the columns of the C core."""
