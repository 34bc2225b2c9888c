"""What a feed sent and no row was made of: counted by reason, and logged now and then."""

import logging
import time
from collections import Counter

REASONS = {
    "not JSON": "a message that json cannot read",
    "not a book": "a message without the fields of a book, or with another symbol's",
    "error": "the exchange says that something is wrong, as with a subscription",
    "unknown channel": "a channel that nothing is known of",
    "level": "a price, size or number of orders that is no finite number, or is negative",
    "time": "a time before 1970, or more than a day after its receipt",
    "crossed": "the best bid is not below the best ask",
    "sequence": "an update that does not follow the one before",
    "checksum": "the exchange's checksum is not that of the book",
    "waiting": "an update while a snapshot is waited for",
}
"""Why messages are rejected, each with what it means."""

_EVERY_S = 60.0


class RejectedError(ValueError):
    """A message that no row is made of; `reason` is one of REASONS."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(f"{reason}: {text}")
        self.reason = reason


class Rejections(Counter[str]):
    """How many messages were rejected, by reason. Each reason is logged at once, then once a minute."""

    def __init__(self, name: str, logger: logging.Logger) -> None:
        super().__init__()
        self._name, self._logger = name, logger
        self._logged: dict[str, tuple[float, int]] = {}  # when, and how many there were

    def add(self, error: RejectedError) -> None:
        reason = error.reason
        self[reason] += 1
        now = time.monotonic()
        when, count = self._logged.get(reason, (-_EVERY_S, 0))
        if now - when >= _EVERY_S:
            self._logged[reason] = now, self[reason]
            self._logger.warning("%s: %d rejected, the last one: %s", self._name, self[reason] - count, error)
