"""The one kernel that SGLang on a CPU without its own kernels takes from vLLM's package; see `_custom_ops`."""
