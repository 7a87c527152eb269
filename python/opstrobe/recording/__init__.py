# SPDX-License-Identifier: Apache-2.0
"""What a session records, from its options to its trace."""
