"""Rows of Parquet files, read here without a library (docs/decisions.md): `nesting.rows` is the door."""
