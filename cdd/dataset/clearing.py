"""Removing a dataset, to write a new one in its place."""

from cdd.dataset.directory import Directory
from cdd.dataset.session import DATASET, owner_path


def clear(directory: Directory) -> None:
    """Removes what is there of a dataset; nothing else, and nothing while a writer has it open. Raises
    FileExistsError for a folder that holds other things, and BlockingIOError."""
    names = set(directory.list(""))
    strange = sorted(names - {"meta", "data"})
    if strange and directory.size(DATASET) is None:
        raise FileExistsError(
            17,
            f"the folder holds {strange[0]!r}, and no dataset: write one into a folder of its own",
            directory.name,
        )
    for owner in directory.list("meta/writers"):
        if directory.is_locked(owner_path(owner)):
            raise BlockingIOError(11, "a writer has the dataset open", directory.name)
    directory.delete(DATASET)  # from now on there is none
    for folder in ("meta", "data"):
        _remove(directory, folder)


def _remove(directory: Directory, folder: str) -> None:
    for name in directory.list(folder):
        path = f"{folder}/{name}"
        if directory.is_folder(path):
            _remove(directory, path)
        else:
            directory.delete(path)
    directory.remove_folder(folder)
