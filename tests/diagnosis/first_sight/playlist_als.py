# SPDX-License-Identifier: Apache-2.0
"""Implicit-feedback matrix factorisation by alternating least squares."""

import torch

LISTENERS, TRACKS, FACTORS, PLAYS = 5000, 3000, 48, 25
REGULARISATION, CONFIDENCE, BLOCK = 0.1, 20.0, 500


def listening_log(generator):
    """Each listener plays tracks near a favourite region of the catalogue."""
    favourite = torch.randint(0, TRACKS, (LISTENERS, 1), generator=generator)
    spread = (80 * torch.randn(LISTENERS, PLAYS, generator=generator)).long()
    tracks = (favourite + spread) % TRACKS
    listeners = torch.arange(LISTENERS).unsqueeze(1).expand_as(tracks)
    plays = torch.sparse_coo_tensor(
        torch.stack([listeners.flatten(), tracks.flatten()]), torch.ones(LISTENERS * PLAYS), (LISTENERS, TRACKS)
    )
    return plays.coalesce()


def padded_neighbours(plays):
    """Neighbour lists of each row, padded to the longest row, with weights of zero in the padding."""
    plays = plays.coalesce()
    rows, columns = plays.indices()
    counts = torch.bincount(rows, minlength=plays.shape[0])
    first = counts.cumsum(0) - counts
    slot = torch.arange(len(rows)) - first[rows]
    neighbours = torch.zeros(plays.shape[0], int(counts.max()), dtype=torch.long)
    weights = torch.zeros(neighbours.shape)
    neighbours[rows, slot], weights[rows, slot] = columns, plays.values()
    return neighbours, weights


def solve_side(fixed, neighbours, weights):
    """Exact minimiser of the weighted squared error for every row, given the other side."""
    base = fixed.T @ fixed + REGULARISATION * torch.eye(FACTORS)
    solved = torch.empty(len(neighbours), FACTORS)
    for start in range(0, len(neighbours), BLOCK):
        block = slice(start, start + BLOCK)
        vectors = fixed[neighbours[block]]
        extra = CONFIDENCE * weights[block].unsqueeze(2)
        system = torch.baddbmm(base.expand(len(vectors), -1, -1), vectors.mT, vectors * extra)
        preferred = (weights[block] > 0).unsqueeze(2)
        right = (vectors * (1 + extra) * preferred).sum(dim=1, keepdim=True).mT
        solved[block] = torch.cholesky_solve(right, torch.linalg.cholesky(system)).squeeze(2)
    return solved


def objective(listeners, tracks, neighbours, weights):
    gram = (listeners.T @ listeners * (tracks.T @ tracks)).sum()
    predicted = (tracks[neighbours] @ listeners.unsqueeze(2)).squeeze(2)
    preferred = (weights > 0).float()
    known = (preferred * ((1 + CONFIDENCE * weights) * (1 - predicted).square() - predicted.square())).sum()
    penalty = REGULARISATION * (listeners.square().sum() + tracks.square().sum())
    return (gram + known + penalty).item()


@torch.inference_mode()
def main():
    generator = torch.Generator().manual_seed(210)
    plays = listening_log(generator)
    by_listener, by_track = padded_neighbours(plays), padded_neighbours(plays.t())
    tracks = 0.1 * torch.randn(TRACKS, FACTORS, generator=generator)
    for sweep in range(40):
        listeners = solve_side(tracks, *by_listener)
        tracks = solve_side(listeners, *by_track)
        if sweep % 5 == 4:
            print(f"sweep {sweep + 1}: objective {objective(listeners, tracks, *by_listener):.1f}")
    similar = (tracks[:1] @ tracks.T).topk(6).indices.tolist()[0]
    print("closest to track 0:", similar)


if __name__ == "__main__":
    main()
