"""HTTP and the OpenAI protocol without I/O: requests to bytes, bytes to replies, refusals to typed failures.

    sse        the body → events → a `Reply` or a `RequestFailed` (the reply parser)
    completion what the events of one reply add up to
    failures   an error status or an error event → `RequestFailed`

The transports import all of it; packages outside `client` import `reply` only.
"""
