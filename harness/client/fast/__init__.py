"""The transport for plain http, on sockets of its own: many streams at little CPU a token.

Entered by `chooser` only; who runs a loop for it takes `event_loop.new_event_loop`.
"""
