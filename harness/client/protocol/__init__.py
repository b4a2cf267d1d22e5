"""HTTP and an API's replies without I/O: bytes become replies, refusals become typed failures.

    response   the bytes of a connection → status, headers, body
    sse        the body → events → a `Reply` or a `RequestFailed` (the reply parser)
    reply      the sum of the events of one reply, and a complete `Reply`
    failures   an error status, an error event or a broken connection → `RequestFailed`, and how long to wait

The transports import all of these modules; other packages import `reply` and `failures`.
"""
