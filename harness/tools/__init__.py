"""Tools that a run can offer to a model: each is a `Tool` value in a file with the tool's name; `table` lists them."""
