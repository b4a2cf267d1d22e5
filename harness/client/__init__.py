"""One request to an OpenAI-compatible endpoint → one reply or one typed failure. Knows nothing of questions or runs.

Other packages enter by `transport.open_transport` and `interface`, and use the values in `address`, `spelling`,
`protocol.reply` and `protocol.failures`. `facts` asks a server about itself.
"""
