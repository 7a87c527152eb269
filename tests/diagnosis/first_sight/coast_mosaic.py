# SPDX-License-Identifier: Apache-2.0
"""Cloud-weighted mosaic of a coast from repeated multispectral acquisitions (synthetic)."""

import time
from dataclasses import dataclass

import torch

BANDS, ROWS, COLUMNS = 10, 1024, 1024
ACQUISITIONS = 50
RED, NIR, BLUE = 3, 7, 0


@dataclass
class Acquisition:
    counts: torch.Tensor  # int16, (bands, rows, columns)
    sun: float
    haze: torch.Tensor  # (bands, 1, 1)


class Archive:
    """A few stored scenes that are revisited under different sun and haze."""

    def __init__(self, stored, generator):
        self.generator = generator
        land = torch.rand(BANDS, ROWS // 8, COLUMNS // 8, generator=generator)
        land = land.repeat_interleave(8, 1).repeat_interleave(8, 2)
        self.scenes = []
        for _ in range(stored):
            noise = torch.rand(BANDS, ROWS, COLUMNS, generator=generator)
            self.scenes.append((200 + 2400 * (0.8 * land + 0.2 * noise)).to(torch.int16))

    def __iter__(self):
        for visit in range(ACQUISITIONS):
            sun, haze = torch.rand(2, generator=self.generator).tolist()
            decay = torch.linspace(1.0, 0.1, BANDS).view(-1, 1, 1)
            yield Acquisition(self.scenes[visit % len(self.scenes)], 0.9 + 0.2 * sun, 0.06 * haze * decay)


class Calibration:
    """Sensor counts to surface reflectance, band by band."""

    def __init__(self, generator):
        self.dark = 180 + 20 * torch.rand(BANDS, 1, 1, generator=generator)
        self.gain = 1 / (2300 + 200 * torch.rand(BANDS, 1, 1, generator=generator))

    def reflectance(self, acquisition):
        scale = self.gain / acquisition.sun
        shift = self.dark * scale + acquisition.haze
        surface = acquisition.counts.float()  # planted
        surface = surface * scale  # planted
        surface = surface - shift  # planted
        return surface.clamp(0.0, 1.0)  # planted


class Mosaic:
    """Weighted mean of all acquisitions, kept as a running mean."""

    def __init__(self):
        self.mean = torch.zeros(BANDS, ROWS, COLUMNS)
        self.weight = torch.full((ROWS, COLUMNS), 1e-6)
        self.greenest = torch.full((ROWS, COLUMNS), -1.0)

    def add(self, surface):
        clear = (1.2 - 1.5 * surface[BLUE]).clamp_(0.05, 1.0)
        self.weight += clear
        self.mean.lerp_(surface, clear / self.weight)
        red, nir = surface[RED], surface[NIR]
        index = (nir - red).div_((nir + red).add_(1e-3))
        torch.maximum(self.greenest, index, out=self.greenest)


@torch.inference_mode()
def main():
    generator = torch.Generator().manual_seed(13)
    archive = Archive(3, generator)
    calibration, mosaic = Calibration(generator), Mosaic()
    started = time.process_time()
    for acquisition in archive:
        mosaic.add(calibration.reflectance(acquisition))
    elapsed = time.process_time() - started
    print(f"mean reflectance {mosaic.mean.mean():.5f}, greenest {mosaic.greenest.mean():.5f}")
    print(f"loop {elapsed:.2f} s")


if __name__ == "__main__":
    main()
