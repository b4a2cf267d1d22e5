"""A reply that comes a second time on a connection that was kept: what is left over from the request before.

Told by its id and its text, where a server's ids differ: an id alone may be the time of day, which two short replies
share. Not covered: a server whose replies have one id or none, and another request's reply that never came on this
connection.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.client.protocol.reply import Reply, RequestFailed


class Mark(NamedTuple):
    """By which a reply is known again. content: a hash of its text and reasoning."""

    request_id: str
    content: int


class ReplyIds:
    """What is known of one server's ids."""

    def __init__(self) -> None:
        self._latest: str | None = None
        self._varies = False

    def check(self, reply: Reply, before: Mark | None) -> Mark | None:
        """The reply's mark. before: that of the reply before it on the same connection.

        Raises `RequestFailed` where both are one; the connection must then be closed.
        """
        given = reply.request_id
        if given is None:
            return None
        self._varies |= self._latest is not None and self._latest != given
        self._latest = given
        mark = Mark(given, hash((reply.text, reply.reasoning)))
        if self._varies and mark == before:
            raise RequestFailed("malformed", "the reply is the one before on this connection once more: a leftover")
        return mark
