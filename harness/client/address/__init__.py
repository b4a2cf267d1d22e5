"""Where a request goes and what must stay secret: endpoints, hosted providers, proxies, authorities, redaction.

No network. Anybody in `client` and above may enter; nothing here imports another room of the client.
"""
