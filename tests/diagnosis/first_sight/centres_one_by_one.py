# SPDX-License-Identifier: Apache-2.0
"""Learns a codebook of image patches by k-means: the mean of each cluster is computed on its own.

Source: merged kornia/kornia pull request 4545 ("Vectorize KMeans centroid update"), issue 4533.
"""

import torch


class Codebook:
    def __init__(self, codes: int, width: int):
        self.centres = torch.randn(codes, width)

    def assign(self, patches: torch.Tensor) -> torch.Tensor:
        distances = self.centres.square().sum(1) - 2 * patches @ self.centres.T
        return distances.argmin(1)

    def update(self, patches: torch.Tensor) -> float:
        nearest = self.assign(patches)
        previous = self.centres.clone()
        for code in range(len(self.centres)):
            members = patches[nearest == code]  # planted
            if len(members):
                self.centres[code] = members.mean(0)  # planted
        return (self.centres - previous).norm().item()


def whitened(patches: torch.Tensor) -> torch.Tensor:
    patches = patches - patches.mean(1, keepdim=True)
    return patches / (patches.norm(dim=1, keepdim=True) + 1e-6)


torch.manual_seed(0)
patches = whitened(torch.rand(16_000, 75))
codebook = Codebook(600, 75)
for iteration in range(14):
    moved = codebook.update(patches)
    if moved < 1e-4:
        break
print(f"codes moved by {moved:.4f} in the last iteration")
