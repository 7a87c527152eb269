# SPDX-License-Identifier: Apache-2.0
"""Search: all scores are sorted to take the best ten.

Source: torch.topk's documentation; merged changes "use topk instead of sort".
"""

import torch
from torch import nn

torch.manual_seed(0)
documents = nn.functional.normalize(torch.randn(60000, 32), dim=1)
encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32)).eval()


@torch.no_grad()
def search(queries):
    scores = encoder(queries) @ documents.T
    order = scores.argsort(dim=1, descending=True)  # planted
    return order[:, :10]


for batch in range(15):
    search(torch.randn(8, 64))
