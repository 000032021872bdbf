"""The visits of a site: one shopper each, known by an id that cannot be guessed, and at most so many."""

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from arl_gym.envs.webshop.session import Session

MAX_VISITS = 1000
"""Visits that are kept unless something else is said."""


@dataclass(slots=True, kw_only=True)
class Visit:
    """One shopper."""

    id: str
    task_id: str
    session: Session
    with_parts: bool
    """Whether the last page shows what the score is made of and what was asked for."""
    n_pages: int = 0
    """Pages served so far."""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Visits:
    """The visits, the longest unused of which ends when there are more than `most`."""

    def __init__(self, most: int):
        self._most = most
        self._visits: OrderedDict[str, Visit] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._visits)

    def start(self, session: Session, task_id: str, *, with_parts: bool) -> Visit:
        """Add a visit; `session` has yet to begin it."""
        visit = Visit(id=secrets.token_urlsafe(16), task_id=task_id, session=session, with_parts=with_parts)
        with self._lock:
            self._visits[visit.id] = visit
            while len(self._visits) > self._most:
                self._visits.popitem(last=False)
        return visit

    def find(self, id: str) -> Visit | None:
        """Return a visit that has not ended, None if there is none of this id."""
        with self._lock:
            if id in self._visits:
                self._visits.move_to_end(id)
            return self._visits.get(id)
