"""Settings by name: sampling, and what is known of models. Data with their sources; anybody above may read them."""
