"""Where a spec becomes commands: a module an engine writes its flags (`--tp` → `--tensor-parallel-size` in `vllm`).

Entered by `keeping.supervisor` through `inspect` and `deploy`; nothing here starts a server.
"""
