"""One request to an OpenAI-compatible endpoint → one reply or one typed failure. No knowledge of questions or runs.

Other packages enter through `transport.open_transport` and `interface`, and use the types in `address`,
`request_fields`, `protocol.reply` and `protocol.failures`. `facts` asks a server about itself.
"""
