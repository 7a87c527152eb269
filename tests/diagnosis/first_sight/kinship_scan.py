# SPDX-License-Identifier: Apache-2.0
"""Pairwise KING-robust kinship for a simulated cohort, streamed over SNP blocks."""

import argparse
import time

import numpy as np
import torch


def simulate_cohort(n_families, seed):
    """Founder haplotype labels: each family has two parents, two children."""
    rng = np.random.default_rng(seed)
    samples = []
    for fam in range(n_families):
        samples += [(fam, "father"), (fam, "mother"), (fam, "child"), (fam, "child")]
    return samples, rng


def snp_blocks(n_families, n_blocks, block_size, rng):
    """Yield int8 dosage matrices of shape (samples, block_size)."""
    for _ in range(n_blocks):
        freq = rng.uniform(0.05, 0.5, size=block_size).astype(np.float32)
        draws = rng.random((n_families, 4, block_size), dtype=np.float32)
        founders = (draws < freq).astype(np.int8)
        dosage = np.empty((n_families, 4, block_size), dtype=np.int8)
        dosage[:, 0] = founders[:, 0] + founders[:, 1]
        dosage[:, 1] = founders[:, 2] + founders[:, 3]
        for child in (2, 3):
            # one recombination-free transmission per block and parent
            pick = rng.integers(0, 2, size=(n_families, 2))
            fam = np.arange(n_families)
            dosage[:, child] = founders[fam, pick[:, 0]] + founders[fam, 2 + pick[:, 1]]
        yield dosage.reshape(n_families * 4, block_size)


class KingAccumulator:
    def __init__(self, n_samples):
        self.both_het = torch.zeros(n_samples, n_samples)
        self.opposite_hom = torch.zeros(n_samples, n_samples)
        self.het_count = torch.zeros(n_samples)
        self.n_snps = 0

    def update(self, dosage):
        het, ref, alt = ((dosage == k).long() for k in (1, 0, 2))  # planted
        self.both_het += het @ het.T
        self.opposite_hom += ref @ alt.T
        self.het_count += het.sum(dim=1)
        self.n_snps += dosage.shape[1]

    def kinship(self):
        ibs0 = self.opposite_hom + self.opposite_hom.T
        smaller = torch.minimum(self.het_count[:, None], self.het_count[None, :])
        larger_sum = self.het_count[:, None] + self.het_count[None, :]
        phi = (self.both_het - 2 * ibs0) / (2 * smaller)
        return phi + 0.5 - larger_sum / (4 * smaller)


def summarise(phi, samples):
    family = torch.tensor([fam for fam, _ in samples])
    is_child = torch.tensor([role == "child" for _, role in samples])
    same = family[:, None] == family[None, :]
    off_diag = ~torch.eye(len(samples), dtype=torch.bool)
    parent_child = same & (is_child[:, None] ^ is_child[None, :])
    siblings = same & is_child[:, None] & is_child[None, :] & off_diag
    return {
        "parent-child": phi[parent_child].mean().item(),
        "siblings": phi[siblings].mean().item(),
        "unrelated": phi[~same].mean().item(),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--families", type=int, default=150)
    parser.add_argument("--blocks", type=int, default=28)
    parser.add_argument("--block-size", type=int, default=384)
    args = parser.parse_args()

    samples, rng = simulate_cohort(args.families, seed=3)
    acc = KingAccumulator(len(samples))
    start = time.perf_counter()
    for dosage in snp_blocks(args.families, args.blocks, args.block_size, rng):
        acc.update(torch.from_numpy(dosage))
    elapsed = time.perf_counter() - start
    print(f"{acc.n_snps} SNPs, {len(samples)} samples, loop {elapsed:.2f}s")
    for name, value in summarise(acc.kinship(), samples).items():
        print(f"{name:>13}: {value:.5f}")


if __name__ == "__main__":
    main()
