# SPDX-License-Identifier: Apache-2.0
"""Streaming wake-word detection: a causal network that keeps its own audio history."""

import time
from collections import deque

import torch
from torch import nn

FRAME, MELS, WORDS = 160, 40, 4


class StreamingConv(nn.Module):
    """Causal dilated convolution over frames with the left context kept between calls."""

    def __init__(self, channels, dilation):
        super().__init__()
        self.context = 2 * dilation
        self.filter = nn.Conv1d(channels, 2 * channels, 3, dilation=dilation)
        self.mix = nn.Conv1d(channels, channels, 1)
        self.history = torch.zeros(1, channels, self.context)

    def forward(self, x):
        padded = torch.cat([self.history, x], dim=2)
        self.history = padded[:, :, -self.context :].clone()
        return x + self.mix(nn.functional.glu(self.filter(padded), dim=1))


class WakeWordNet(nn.Module):
    def __init__(self, channels=96):
        super().__init__()
        self.register_buffer("window", torch.hann_window(2 * FRAME))
        self.register_buffer("filters", torch.rand(FRAME + 1, MELS) / FRAME)
        self.entry = nn.Conv1d(MELS, channels, 1)
        self.layers = nn.Sequential(*(StreamingConv(channels, 2**n) for n in range(5)))
        self.classify = nn.Linear(channels, WORDS)
        self.tail = torch.zeros(FRAME)

    def forward(self, samples):
        audio = torch.cat([self.tail, samples])
        self.tail = samples[-FRAME:].clone()
        spectrum = torch.fft.rfft(audio.unfold(0, 2 * FRAME, FRAME) * self.window).abs().square()
        features = torch.log(spectrum @ self.filters + 1e-5)
        hidden = self.layers(self.entry(features.T.unsqueeze(0)))
        return self.classify(hidden.squeeze(0).T).softmax(dim=1)


def microphone(chunks, chunk_frames, generator):
    """Chunks of 40 ms as a sound card would deliver them; a later one is not known in advance."""
    time_axis = torch.arange(chunk_frames * FRAME) / 16_000
    for number in range(chunks):
        noise = 0.1 * torch.randn(len(time_axis), generator=generator)
        pitch = 200 + 150 * (number // 25 % 5)
        yield noise + 0.3 * torch.sin(6.2832 * pitch * (time_axis + number * chunk_frames * FRAME / 16_000))


@torch.inference_mode()
def listen(model, stream, threshold=0.4):
    recent = deque(maxlen=12)
    detections, latencies = 0, []
    for samples in stream:
        started = time.perf_counter()
        recent.append(model(samples).mean(dim=0))
        smoothed = torch.stack(tuple(recent)).mean(dim=0)
        score, word = smoothed.max(dim=0)
        if score.item() > threshold and word.item() > 0:
            detections += 1
            recent.clear()
        latencies.append(time.perf_counter() - started)
    return detections, torch.tensor(latencies)


def main():
    torch.manual_seed(211)
    model = WakeWordNet().eval()
    stream = microphone(chunks=2400, chunk_frames=4, generator=torch.Generator().manual_seed(212))
    detections, latencies = listen(model, stream)
    print(
        f"{len(latencies)} chunks, {detections} detections, median latency {1e3 * latencies.median().item():.3f} ms, "
        f"99th percentile {1e3 * latencies.quantile(0.99).item():.3f} ms"
    )


if __name__ == "__main__":
    main()
