"""Where a request goes and what must stay secret: endpoints, hosted providers, proxies, certificates, hiding of keys.

Nothing here uses the network. Every package from `client` upwards may import this.
"""
