"""One room a kind of cluster: its `CLUSTER` runs, grades and serves there."""
