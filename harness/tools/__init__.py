"""Tools that a run can offer to a model: each a value `Tool`, in a file of its name; `table` lists them."""
