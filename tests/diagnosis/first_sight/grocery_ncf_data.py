# SPDX-License-Identifier: Apache-2.0
"""Synthetic purchases for grocery_ncf.py."""

import numpy as np


def purchases(customers, products, tastes, seed):
    """Lists of products per customer: heavy buyers with a taste for one part of the catalogue."""
    rng = np.random.default_rng(seed)
    taste = rng.integers(tastes, size=customers)
    baskets = []
    for customer in range(customers):
        count = int(rng.integers(900, 2200))
        own = rng.integers(products // tastes, size=count) * tastes + taste[customer]
        other = rng.integers(products, size=count)
        chosen = np.where(rng.random(count) < 0.6, own, other)
        baskets.append(np.unique(chosen).tolist())
    return baskets
