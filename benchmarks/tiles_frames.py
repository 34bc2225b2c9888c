"""Frames for the benchmarks of tiles."""

import numpy as np

HEIGHT = WIDTH = 2048


def frames_of(kind: str, count: int) -> np.ndarray:
    """`count` frames (uint16, 2048 x 2048): "camera" are like an sCMOS camera's, "smooth" have no noise."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    scene = 8 + 890 * np.exp(-((y - 900) ** 2 + (x - 700) ** 2) / 4e5)
    frames = np.empty((count, HEIGHT, WIDTH), np.uint16)
    deviation = np.sqrt(scene + 4)  # photons, and 2 of read noise
    for number in range(count):
        if kind == "smooth":
            frames[number] = scene * 20 + number
        else:
            frames[number] = 100 + scene + deviation * rng.standard_normal(scene.shape, np.float32)
    return frames
