"""The transports that use an HTTP library: aiohttp for https, proxies and unix sockets; the openai SDK if asked for.

Only `chooser` imports these modules, and only when one is needed: each import takes a tenth of a second.
"""
