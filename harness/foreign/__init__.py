"""What other tools wrote, as questions and samples of ours. Enter by `outputs.read`; knows no run and no grade."""
