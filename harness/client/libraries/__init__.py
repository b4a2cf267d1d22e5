"""The transports that lean on an HTTP library: aiohttp for https, proxies and unix sockets, the openai SDK on request.

Entered by `chooser` only, when first needed: each import costs a tenth of a second.
"""
