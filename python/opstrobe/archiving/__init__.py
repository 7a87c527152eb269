# SPDX-License-Identifier: Apache-2.0
"""Archives: years of traces as Parquet, in a directory or an object store."""
