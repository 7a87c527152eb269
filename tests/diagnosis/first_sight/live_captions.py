# SPDX-License-Identifier: Apache-2.0
"""Live captions: the answer of the model thread is looked for every so often, between naps.

Source: https://github.com/vllm-project/tpu-inference/issues/1830, https://github.com/Runware/sdk-python/pull/98
"""

import queue
import threading
import time
import zlib

import torch
from torch import nn

MELS = 80
FRAMES = 200
WORDS = 900
CHUNKS = 24


class CaptionModel(nn.Module):
    """Two seconds of speech to the words that were said."""

    def __init__(self, width=160, layers=2):
        super().__init__()
        self.enter = nn.Conv1d(MELS, width, 5, stride=2, padding=2)
        self.memory = nn.GRU(width, width, layers, batch_first=True)
        self.words = nn.Linear(width, WORDS)

    def forward(self, mels):
        sound = torch.relu(self.enter(mels)).transpose(1, 2)
        memory, _ = self.memory(sound)
        return self.words(memory)


class CaptionService:
    """Runs the model in a thread of its own, so that the microphone is never held up."""

    def __init__(self, model):
        self.model = model
        self.chunks = queue.Queue()
        self.captions = queue.Queue()
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def start(self):
        self.thread.start()
        return self

    def serve(self):
        with torch.inference_mode():
            while True:
                chunk = self.chunks.get()
                if chunk is None:
                    return
                scores = self.model(chunk)
                words = torch.unique_consecutive(scores[0].argmax(dim=-1))
                self.captions.put(words.tolist())

    def submit(self, chunk):
        self.chunks.put(chunk)

    def caption(self):
        """The words of the chunk that was handed in last."""
        while self.captions.empty():
            time.sleep(0.05)  # planted
        return self.captions.get()

    def stop(self):
        self.chunks.put(None)
        self.thread.join()


class Microphone:
    """Speech-like sound in chunks of a fixed length."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def read(self):
        tone = torch.randn(1, MELS, FRAMES // 10, generator=self.generator)
        held = nn.functional.interpolate(tone, size=FRAMES, mode="linear")
        return held + 0.3 * torch.randn(1, MELS, FRAMES, generator=self.generator)


def main():
    torch.manual_seed(53)
    microphone = Microphone(53)
    service = CaptionService(CaptionModel().eval()).start()
    check = 0
    said = 0
    for chunk in range(CHUNKS):
        service.submit(microphone.read())
        words = service.caption()
        said += len(words)
        check = zlib.crc32(repr(words).encode(), check)
    service.stop()
    print(f"captions: {said} words, sum {check}")


if __name__ == "__main__":
    main()
