"""The scenes, a file for each group of commands; `SCENES` of each file lists them."""
