# SPDX-License-Identifier: Apache-2.0
"""Generation: beam search over an attention decoder that captions pictures.

The encoder turns pictures into a grid of vectors, the decoder attends to the grid token by token, and the
beams of a picture compete by their summed log probability until each has ended or the length is reached.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Setting:
    vocabulary: int = 6000
    width: int = 512
    grid: int = 256
    beams: int = 4
    length: int = 14
    pictures: int = 16
    requests: int = 16
    end: int = 1


class Encoder(nn.Module):
    def __init__(self, grid):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 64, 5, 4, 2), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.Conv2d(128, grid, 1)
        )

    def forward(self, picture):
        return self.layers(picture).flatten(2).transpose(1, 2).contiguous()


class Decoder(nn.Module):
    def __init__(self, setting):
        super().__init__()
        self.embed = nn.Embedding(setting.vocabulary, setting.grid)
        self.cell = nn.GRUCell(2 * setting.grid, setting.width)
        self.query = nn.Linear(setting.width, setting.grid, bias=False)
        self.key = nn.Linear(setting.grid, setting.grid, bias=False)
        self.begin = nn.Linear(setting.grid, setting.width)
        self.vocabulary = nn.Linear(setting.width, setting.vocabulary)

    def start(self, grid):
        """Keys of the attention and the first state; both do not depend on the tokens."""
        return self.key(grid), torch.tanh(self.begin(grid.mean(dim=1)))

    def forward(self, token, state, grid, keys):
        """token (pictures, beams), state (pictures * beams, width) to log probabilities and the next state."""
        pictures, beams = token.shape
        query = self.query(state).view(pictures, beams, -1)
        weight = torch.softmax(query @ keys.transpose(1, 2) / keys.shape[-1] ** 0.5, dim=-1)
        seen = (weight @ grid).flatten(0, 1)
        state = self.cell(torch.cat([self.embed(token).flatten(0, 1), seen], dim=1), state)
        return F.log_softmax(4 * self.vocabulary(state), dim=-1).view(pictures, beams, -1), state


class Captioner:
    def __init__(self, setting):
        self.setting = setting
        self.encoder = Encoder(setting.grid).to(memory_format=torch.channels_last).eval()
        self.decoder = Decoder(setting).eval()

    @torch.inference_mode()
    def caption(self, picture):
        s = self.setting
        grid = self.encoder(picture)
        keys, state = self.decoder.start(grid)
        state = state.repeat_interleave(s.beams, dim=0)
        count = picture.shape[0]
        token = torch.zeros(count, s.beams, dtype=torch.long)
        score = torch.full((count, s.beams), float("-inf"))
        score[:, 0] = 0.0
        ended = torch.zeros(count, s.beams, dtype=torch.bool)
        text = torch.empty(count, s.beams, 0, dtype=torch.long)
        offset = torch.arange(count).unsqueeze(1) * s.beams
        for _ in range(s.length):
            log_probability, state = self.decoder(token, state, grid, keys)
            # an ended beam may only repeat the end token, at no cost
            log_probability[ended] = float("-inf")
            log_probability[..., s.end].masked_fill_(ended, 0.0)
            total = score.unsqueeze(-1) + log_probability
            score, flat = total.flatten(1).topk(s.beams, dim=1)
            parent, token = flat // s.vocabulary, flat % s.vocabulary
            state = state[(offset + parent).flatten()]
            text = torch.cat([text.gather(1, parent.unsqueeze(-1).expand_as(text)), token.unsqueeze(-1)], dim=-1)
            ended = ended.gather(1, parent) | (token == s.end)
            if ended.all():
                break
        return text[:, 0], score[:, 0]


def pictures(setting, request):
    generator = torch.Generator().manual_seed(request)
    coarse = torch.rand(setting.pictures, 3, 8, 8, generator=generator)
    return F.interpolate(coarse, size=64, mode="bilinear").contiguous(memory_format=torch.channels_last)


def main():
    torch.manual_seed(37)
    setting = Setting()
    captioner = Captioner(setting)
    scores, distinct = [], set()
    for request in range(setting.requests):
        text, score = captioner.caption(pictures(setting, request))
        scores.append(score.mean().item())
        distinct.update(text.flatten().tolist())
    print(f"mean score {sum(scores) / len(scores):.3f} distinct tokens {len(distinct)}")


if __name__ == "__main__":
    main()
