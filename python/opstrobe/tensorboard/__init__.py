# SPDX-License-Identifier: Apache-2.0
"""The viewer as a TensorBoard plugin."""
