"""Where a request goes and what must stay secret: endpoints, hosted providers, proxies, certificates, hiding keys.

Nothing here uses the network. Every package from `client` upward may import this one.
"""
