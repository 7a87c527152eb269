# SPDX-License-Identifier: Apache-2.0
"""Generative vision: a vector-quantised autoencoder compresses small cartoon faces into code indices.

Faces are ellipses for head, eyes and mouth on a coloured background. The encoder yields a grid of latent
vectors, each is replaced by its nearest code (straight-through gradient), and the decoder paints the face.
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(31)

SIZE, CODES, LATENT = 64, 2048, 32
BATCH, STEPS = 24, 22


def ellipse(grid, cx, cy, rx, ry):
    x, y = grid
    return (((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 < 1).float()


def draw_faces(count):
    axis = torch.linspace(-1, 1, SIZE)
    grid = torch.meshgrid(axis, axis, indexing="xy")
    faces = []
    for _ in range(count):
        u = torch.rand(12).tolist()
        canvas = torch.tensor(u[:3]).view(3, 1, 1).expand(3, SIZE, SIZE).clone()
        head = ellipse(grid, 0.2 * u[3] - 0.1, 0.0, 0.5 + 0.2 * u[4], 0.6 + 0.2 * u[5])
        skin = torch.tensor([0.9, 0.6 + 0.3 * u[6], 0.4 + 0.4 * u[7]]).view(3, 1, 1)
        canvas = canvas * (1 - head) + skin * head
        for side in (-1, 1):
            eye = ellipse(grid, side * (0.2 + 0.1 * u[8]), -0.2, 0.08, 0.05 + 0.08 * u[9])
            canvas = canvas * (1 - eye)
        mouth = ellipse(grid, 0.0, 0.35, 0.15 + 0.2 * u[10], 0.03 + 0.1 * u[11])
        canvas = canvas * (1 - mouth) + torch.tensor([0.7, 0.1, 0.1]).view(3, 1, 1) * mouth
        faces.append(canvas)
    return torch.stack(faces).contiguous(memory_format=torch.channels_last)


class Codebook(nn.Module):
    """Nearest code per latent vector, commitment loss and perplexity."""

    def __init__(self, codes, width, commitment=0.25):
        super().__init__()
        self.embedding = nn.Embedding(codes, width)
        nn.init.normal_(self.embedding.weight)
        self.codes = codes
        self.commitment = commitment

    def nearest(self, flat):
        weight = self.embedding.weight
        distance = weight.square().sum(1) - 2 * flat @ weight.T
        return distance.argmin(dim=1)

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        with torch.no_grad():
            index = self.nearest(flat)
        encodings = torch.zeros(index.numel(), self.codes).scatter_(1, index.unsqueeze(1), 1.0)  # planted
        chosen = encodings @ self.embedding.weight  # planted
        loss = F.mse_loss(chosen, flat.detach()) + self.commitment * F.mse_loss(flat, chosen.detach())
        share = encodings.mean(dim=0)  # planted
        perplexity = torch.exp(-(share * torch.log(share + 1e-10)).sum())
        quantised = flat + (chosen - flat).detach()
        batch, width, high, wide = z.shape
        return quantised.view(batch, high, wide, width).permute(0, 3, 1, 2), loss, perplexity


class FaceCoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(width, width, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(width, LATENT, 3, 1, 1),
            nn.BatchNorm2d(LATENT, affine=False),
        )
        self.codebook = Codebook(CODES, LATENT)
        self.decoder = nn.Sequential(
            nn.Conv2d(LATENT, width, 3, 1, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, width, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 3, 4, 2, 1),
        )

    def forward(self, image):
        quantised, loss, perplexity = self.codebook(self.encoder(image))
        return self.decoder(quantised), loss, perplexity


def main():
    album = draw_faces(96)
    model = FaceCoder().to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(STEPS):
        image = album[torch.randint(0, len(album), (BATCH,))].contiguous(memory_format=torch.channels_last)
        painted, code_loss, perplexity = model(image)
        picture_loss = F.mse_loss(painted, image)
        optimizer.zero_grad()
        (picture_loss + code_loss).backward()
        optimizer.step()
    print(f"picture {picture_loss.item():.3f} codes {code_loss.item():.3f} perplexity {perplexity.item():.2f}")


if __name__ == "__main__":
    main()
