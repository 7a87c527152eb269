# SPDX-License-Identifier: Apache-2.0
"""Single-image haze removal (dark channel prior, guided filter) for a stream of harbour frames."""

import time

import torch
import torch.nn.functional as F

HEIGHT, WIDTH = 180, 240
RADIUS, EPS = 16, 1e-3


def synth_frames(count, generator):
    """Textured scenes behind haze whose density grows with the distance."""
    depth = torch.linspace(1.6, 0.2, HEIGHT).view(1, HEIGHT, 1)
    for _ in range(count):
        coarse = torch.rand(1, 3, 12, 16, generator=generator)
        scene = F.interpolate(coarse, (HEIGHT, WIDTH), mode="bilinear", align_corners=False)[0]
        scene = (scene + 0.15 * torch.rand(3, HEIGHT, WIDTH, generator=generator)).clamp(0, 1)
        haze = torch.exp(-depth * (0.8 + 0.4 * torch.rand(1, generator=generator)))
        yield scene * haze + 0.92 * (1 - haze)


class WindowMean:
    """Mean over the (2 r + 1)^2 window round every pixel, clipped at the border."""

    def __init__(self, radius):
        self.radius = radius

    def __call__(self, planes):
        r = self.radius
        return F.avg_pool2d(planes, 2 * r + 1, 1, r, count_include_pad=False)  # planted


def smooth_by_guide(mean, guide, signal):
    """Edge-preserving smoothing of `signal` (h, w) with the grey picture `guide` (h, w)."""
    stacked = torch.stack([guide, signal, guide * guide, guide * signal])[None]
    m_i, m_p, m_ii, m_ip = mean(stacked)[0]
    slope = (m_ip - m_i * m_p) / (m_ii - m_i * m_i + EPS)
    offset = m_p - slope * m_i
    slope, offset = mean(torch.stack([slope, offset])[None])[0]
    return slope * guide + offset


def dark_channel(frame, size=7):
    low = -frame.amin(0, keepdim=True)[None]
    low = F.max_pool2d(low, (1, size), 1, (0, size // 2))
    return -F.max_pool2d(low, (size, 1), 1, (size // 2, 0))[0, 0]


def clear(frame, mean):
    dark = dark_channel(frame)
    brightest = dark.flatten().topk(dark.numel() // 1000).indices
    air = frame.flatten(1)[:, brightest].mean(1).view(3, 1, 1)
    transmission = 1 - 0.95 * dark_channel(frame / air)
    grey = (frame * frame.new_tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(0)
    transmission = smooth_by_guide(mean, grey, transmission).clamp(0.1, 1.0)
    return ((frame - air) / transmission + air).clamp(0, 1), transmission


@torch.inference_mode()
def main():
    generator = torch.Generator().manual_seed(8)
    mean = WindowMean(RADIUS)
    frames = list(synth_frames(44, generator))
    contrast, passed = [], []
    started = time.process_time()
    for frame in frames:
        cleared, transmission = clear(frame, mean)
        contrast.append(cleared.std() / frame.std())
        passed.append(transmission.mean())
    elapsed = time.process_time() - started
    print(f"contrast gain {torch.stack(contrast).mean():.4f}, transmission {torch.stack(passed).mean():.4f}")
    print(f"loop {elapsed:.2f} s")


if __name__ == "__main__":
    main()
