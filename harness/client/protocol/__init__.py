"""HTTP and the reply of an API without I/O: bytes to replies, refusals to typed failures.

    response   the bytes of a connection → status, headers, body
    sse        the body → events → a `Reply` or a `RequestFailed` (the reply parser)
    completion what the events of one reply add up to; `usage` reads its counts
    failures   an error status or an error event → `RequestFailed`; `waits` reads how long to wait

The transports import all of it, other packages `reply` and what reads words of servers.
"""
