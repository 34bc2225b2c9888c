"""Names in folders that survive a power cut."""

import os


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Returns when the names in a folder are on the disk. OSError where the system could not."""
    if os.name == "nt":  # names are durable with what they name
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
