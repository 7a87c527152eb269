# SPDX-License-Identifier: Apache-2.0
"""Vision and language: zero-shot labelling of camera trap pictures with a two-tower model.

The image tower is a patch transformer, the text tower reads prompts such as "a photo of a heron at night".
The animals are given by the user; every picture gets the label whose prompts fit best.
"""

import zlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(27)

ANIMALS = (
    "heron badger fox otter marten lynx boar stork crane owl deer elk hare weasel polecat hedgehog "
    "squirrel beaver wolf bear buzzard kite eagle falcon"
).split()
PROMPTS = ("a photo of a {}", "a {} at night", "a blurry {} behind grass")
BATCH, BATCHES, SIDE, PATCH, JOINT = 24, 56, 96, 16, 96


class Tower(nn.Module):
    """A pre-norm transformer over a sequence, mean pooled and projected into the joint space."""

    def __init__(self, width, depth, heads):
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.project = nn.Linear(width, JOINT, bias=False)

    def forward(self, sequence):
        return F.normalize(self.project(self.layers(sequence).mean(dim=1)), dim=-1)


class ImageEncoder(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.patch = nn.Conv2d(3, width, PATCH, PATCH)
        self.position = nn.Parameter(0.02 * torch.randn((SIDE // PATCH) ** 2, width))
        self.tower = Tower(width, 4, 4)

    def forward(self, image):
        return self.tower(self.patch(image).flatten(2).transpose(1, 2) + self.position)


class TextEncoder(nn.Module):
    def __init__(self, width=192, words=4096, length=8):
        super().__init__()
        self.words, self.length = words, length
        self.embed = nn.Embedding(words, width)
        self.tower = Tower(width, 4, 4)

    def tokens(self, prompts):
        rows = []
        for prompt in prompts:
            ids = [1 + zlib.crc32(word.encode()) % (self.words - 1) for word in prompt.split()]
            rows.append((ids + [0] * self.length)[: self.length])
        return torch.tensor(rows)

    def forward(self, prompts):
        return self.tower(self.embed(self.tokens(prompts)))


class ZeroShotLabeller:
    def __init__(self, image_encoder, text_encoder, animals):
        self.image_encoder = image_encoder.eval()
        self.text_encoder = text_encoder.eval()
        self.animals = animals

    @torch.inference_mode()
    def animal_vectors(self):
        """(animals, JOINT): mean over the prompts of an animal."""
        prompts = [prompt.format(animal) for animal in self.animals for prompt in PROMPTS]
        vectors = self.text_encoder(prompts).view(len(self.animals), len(PROMPTS), JOINT)
        return F.normalize(vectors.mean(dim=1), dim=-1)

    @torch.inference_mode()
    def __call__(self, images):
        animals = self.animal_vectors()  # planted
        similarity = self.image_encoder(images) @ animals.T
        score, best = (100 * similarity).softmax(dim=-1).max(dim=-1)
        return best, score


def camera_trap(count):
    """Pictures of a bright blob in front of a textured background."""
    axis = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    for _ in range(count):
        centre = torch.rand(BATCH, 2, 1, 1) - 0.5
        size = 0.1 + 0.3 * torch.rand(BATCH, 1, 1)
        blob = torch.exp(-((x - centre[:, 0]) ** 2 + (y - centre[:, 1]) ** 2) / size**2)
        yield torch.rand(BATCH, 3, 1, 1) * blob.unsqueeze(1) + 0.1 * torch.randn(BATCH, 3, SIDE, SIDE)


def main():
    labeller = ZeroShotLabeller(ImageEncoder(), TextEncoder(), ANIMALS)
    tally = torch.zeros(len(ANIMALS), dtype=torch.long)
    confidence = 0.0
    for images in camera_trap(BATCHES):
        best, score = labeller(images)
        tally += torch.bincount(best, minlength=len(ANIMALS))
        confidence += score.mean().item()
    print(f"pictures {int(tally.sum())} kinds {int((tally > 0).sum())} confidence {confidence / BATCHES:.4f}")


if __name__ == "__main__":
    main()
