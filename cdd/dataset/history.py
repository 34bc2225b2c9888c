"""What versions there are, and what was done between two of them."""

from typing import Any

from cdd.dataset.log import Version, version_of
from cdd.dataset.session import Session
from cdd.dataset.state import State


def versions(session: Session, last: int | None) -> list[Version]:
    """Dataset.versions()."""
    head = session.newest()
    first = max(head.floor, 1)
    kept = [tag for tag in set(head.tags.values()) if tag < first]
    count = head.number - first + 1 if last is None else max(0, min(last, head.number - first + 1))
    numbers = [*range(head.number, head.number - count, -1)]
    more = None if last is None else last - len(numbers)
    return [version_of(session.log.record(n)) for n in [*numbers, *sorted(kept, reverse=True)[:more]]]


def changes(session: Session, since: Any, state: State) -> list[dict[str, Any]]:
    """Dataset.changes()."""
    first = session.find(since)
    found: list[dict[str, Any]] = []
    for record in session.log.records(first.number + 1, state.number, first.id):
        found += [{"version": record["version"], **op} for op in record["ops"]]
    return found
