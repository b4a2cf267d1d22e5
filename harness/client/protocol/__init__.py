"""HTTP and the OpenAI protocol without I/O: requests as bytes, bytes as replies, refusals as typed failures.

The transports enter everywhere; the rooms above take `reply`.
"""
