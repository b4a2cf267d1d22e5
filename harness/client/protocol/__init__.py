"""HTTP and the reply of an API without I/O: bytes to replies, refusals to typed failures.

    response   the bytes of a connection → status, headers, body
    sse        the body → events → a `Reply` or a `RequestFailed` (the reply parser)
    reply      what the events of one reply add up to, and a whole `Reply`
    failures   an error status, an error event or a broken connection → `RequestFailed`, and how long to wait

The transports import all of it, other packages `reply` and `failures`.
"""
