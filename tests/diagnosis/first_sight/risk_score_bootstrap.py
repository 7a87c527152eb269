# SPDX-License-Identifier: Apache-2.0
"""Bootstrap intervals for the discrimination of clinical risk scores under assay noise."""

import torch
from torch import nn

PATIENTS, MARKERS, REPLICATES, CHUNK = 4000, 30, 5200, 40


class RiskModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(MARKERS, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, markers):
        return self.layers(markers).squeeze(1)


def cohort(generator):
    markers = torch.randn(PATIENTS, MARKERS, generator=generator)
    hazard = markers[:, 0] + 0.5 * markers[:, 1] * markers[:, 2] - 1
    events = torch.rand(PATIENTS, generator=generator) < torch.sigmoid(hazard)
    return markers, events


def fit(model, markers, events, steps=40):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, fused=True)
    for _ in range(steps):
        loss = nn.functional.binary_cross_entropy_with_logits(model(markers), events.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def discrimination(scores, events):
    """Area under the ROC curve of every row; needs the complete order of the scores."""
    order = scores.argsort(dim=1)
    ranked = events.gather(1, order)
    positives = ranked.sum(dim=1)
    negatives = ranked.shape[1] - positives
    position = torch.arange(1, ranked.shape[1] + 1, dtype=torch.double)
    rank_sum = (ranked * position).sum(dim=1)
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


@torch.inference_mode()
def bootstrap(scores, events, generator, assay_noise=0.15):
    noise = assay_noise * scores.std()
    values = []
    for start in range(0, REPLICATES, CHUNK):
        rows = torch.randint(0, len(scores), (CHUNK, len(scores)), generator=generator)
        # every replicate measures its patients again, so every replicate has its own order
        measured = scores[rows] + noise * torch.randn(rows.shape, generator=generator)
        values.append(discrimination(measured, events[rows]))
    return torch.cat(values)


def main():
    torch.manual_seed(208)
    generator = torch.Generator().manual_seed(209)
    markers, events = cohort(generator)
    model = fit(RiskModel(), markers[:2000], events[:2000])
    with torch.inference_mode():
        candidates = {
            "network": model(markers),
            "first marker": markers[:, 0].contiguous(),
            "mean of three": markers[:, :3].mean(dim=1),
        }
    for name, scores in candidates.items():
        values = bootstrap(scores, events, generator)
        low, high = values.quantile(torch.tensor([0.025, 0.975], dtype=values.dtype)).tolist()
        print(f"{name:14s} AUC {values.mean().item():.4f}  (95 % interval {low:.4f} to {high:.4f})")


if __name__ == "__main__":
    main()
