"""Rows of Parquet files, read here without a library (docs/decisions/dependencies.md): `nesting.rows` is the door."""
