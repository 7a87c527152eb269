# SPDX-License-Identifier: Apache-2.0
"""Character error rate of a fully convolutional acoustic model with greedy CTC decoding."""

import time

import numpy as np
import torch
from torch import nn

ALPHABET = "_ abcdefghijklmnopqrstuvwxyz'"
BLANK = 0


class TimeBlock(nn.Module):
    """Residual convolution over time."""

    def __init__(self, width, kernel):
        super().__init__()
        self.mix = nn.Conv1d(width, width, kernel, padding=kernel // 2)

    def forward(self, features):
        return features + torch.relu(self.mix(features))


class AcousticModel(nn.Module):
    def __init__(self, n_mels=40, width=64, depth=2, n_symbols=len(ALPHABET)):
        super().__init__()
        self.front = nn.Conv1d(n_mels, width, 5, stride=2, padding=2)
        self.blocks = nn.Sequential(*(TimeBlock(width, 7) for _ in range(depth)))
        self.symbols = nn.Conv1d(width, n_symbols, 1)

    def forward(self, mels):
        return self.symbols(self.blocks(torch.relu(self.front(mels)))).transpose(1, 2)


class GreedyTranscriber:
    """Collapses repeated symbols of the best path and removes blanks."""

    def __init__(self, alphabet):
        self.alphabet = alphabet

    def transcribe(self, scores, n_frames):
        best = scores.argmax(dim=-1)
        return [self.collapse(path[:length]) for path, length in zip(best, n_frames)]

    def collapse(self, path):
        letters, previous = [], BLANK
        for symbol in path:  # planted
            if symbol != previous and symbol != BLANK:
                letters.append(self.alphabet[symbol])
            previous = symbol
        return "".join(letters)


def edit_distance(reference, hypothesis):
    """Levenshtein distance, one vectorised row per reference letter."""
    target = np.frombuffer(hypothesis.encode(), dtype=np.uint8)
    index = np.arange(target.size + 1)
    row = index.copy()
    for i, letter in enumerate(reference.encode(), start=1):
        substituted = row[:-1] + (target != letter)
        candidate = np.empty_like(row)
        candidate[0] = i
        np.minimum(substituted, row[1:] + 1, out=candidate[1:])
        row = np.minimum.accumulate(candidate - index) + index
    return int(row[-1])


class Corpus:
    """Utterances whose mel frames are noisy copies of one template per letter, sorted by length."""

    def __init__(self, n_utterances, n_mels, seed):
        rng = np.random.default_rng(seed)
        self.templates = rng.normal(size=(len(ALPHABET), n_mels)).astype(np.float32)
        self.utterances = []
        for _ in range(n_utterances):
            letters = rng.integers(1, len(ALPHABET), rng.integers(20, 45))
            frames = np.repeat(letters, rng.integers(8, 14, letters.size))
            mels = self.templates[frames] + 0.3 * rng.normal(size=(frames.size, n_mels)).astype(np.float32)
            self.utterances.append((torch.from_numpy(mels), "".join(ALPHABET[k] for k in letters)))
        self.utterances.sort(key=lambda item: item[0].shape[0])

    def batches(self, size):
        for first in range(0, len(self.utterances), size):
            mels, texts = zip(*self.utterances[first : first + size])
            n_frames = [(part.shape[0] + 1) // 2 for part in mels]
            padded = nn.utils.rnn.pad_sequence(mels, batch_first=True)
            yield padded.transpose(1, 2), n_frames, texts


@torch.inference_mode()
def main():
    torch.manual_seed(21)
    corpus = Corpus(4500, 40, seed=2)
    model, transcriber = AcousticModel().eval(), GreedyTranscriber(ALPHABET)
    n_errors = n_letters = n_output = 0
    started = time.process_time()
    for mels, n_frames, texts in corpus.batches(32):
        for text, reference in zip(transcriber.transcribe(model(mels), n_frames), texts):
            n_errors += edit_distance(reference, text)
            n_letters += len(reference)
            n_output += len(text)
    elapsed = time.process_time() - started
    print(f"{n_letters} reference letters, {n_output} written, error rate {n_errors / n_letters:.4f}")
    print(f"loop cpu {elapsed:.2f}")


if __name__ == "__main__":
    main()
