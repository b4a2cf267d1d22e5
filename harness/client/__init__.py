"""One request to an OpenAI-compatible endpoint → one reply or one typed failure. Knows nothing of questions or runs.

Enter by `chooser.open_transport` and `interface`; `address`, `protocol.reply` and `spelling` are everybody's
above, `facts` asks a server about itself.
"""
