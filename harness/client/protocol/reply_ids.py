"""A reply that comes a second time on a connection that was kept: what is left over from the request before.

Told by its id, where a server gives each reply one of its own. Not covered: a server whose replies have one id or none,
and another request's reply that never came on this connection.
"""

from __future__ import annotations

from harness.client.protocol.reply import Reply, RequestFailed


class ReplyIds:
    """What is known of one server's ids."""

    def __init__(self) -> None:
        self._latest: str | None = None
        self._varies = False

    def check(self, reply: Reply, before: str | None) -> str | None:
        """The reply's id. before: that of the reply before it on the same connection.

        Raises `RequestFailed` where both are one; the connection must then be closed.
        """
        given = reply.request_id
        if given is None:
            return None
        self._varies |= self._latest is not None and self._latest != given
        self._latest = given
        if self._varies and given == before:
            raise RequestFailed("malformed", "the reply has the id of the one before on this connection: a leftover")
        return given
