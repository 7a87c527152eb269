# SPDX-License-Identifier: Apache-2.0
"""Tastes of listeners by alternating least squares: batches of small systems, solved by Cholesky."""

import torch

torch.manual_seed(0)
LISTENERS, SONGS, SIZE = 1500, 800, 32
heard = (torch.rand(LISTENERS, SONGS) < 0.05).float()


def solve(known, weights, confidence=20.0, ridge=1.0):
    """Vectors of all rows, in batches, by the normal equations."""
    common = known.T @ known + ridge * torch.eye(SIZE)
    products = (known[:, :, None] * known[:, None, :]).flatten(1)
    vectors = []
    for rows in weights.split(500):
        systems = common + confidence * (rows @ products).view(-1, SIZE, SIZE)
        targets = (1 + confidence) * rows @ known
        factor = torch.linalg.cholesky(systems)
        vectors.append(torch.cholesky_solve(targets[:, :, None], factor).squeeze(2))
    return torch.cat(vectors)


songs = 0.1 * torch.randn(SONGS, SIZE)
by_song = heard.T.contiguous()
for iteration in range(8):
    listeners = solve(songs, heard)
    songs = solve(listeners, by_song)
best = (listeners[:100] @ songs.T).masked_fill(heard[:100] > 0, -1e9).topk(10).indices
print(best[0].tolist())
