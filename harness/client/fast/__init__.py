"""The fast transport: plain http on sockets of its own, for many streams at little CPU per token.

    transport      chooses or opens a connection for a request, and checks deadlines four times a second
    connecting     host name → connected socket; the kernel's receive stamps
    connection     a socket and the request that it carries
    acknowledging  when the packets of a server are acknowledged
    batches        the bytes of a response → the reply parser, many token events in one step
    event_loop     an asyncio loop that reads these sockets inside its selector

Only `chooser` imports it; code that runs an event loop for it makes the loop with `event_loop.new_event_loop`.
"""
