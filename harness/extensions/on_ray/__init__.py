"""Work of ours on the nodes of a Ray cluster: shards of a run, parts of a grading, servers. Ray is imported late.

What runs there is this package in the same version; Ray carries paths, options and counts between the nodes, never a
text of a model. Every node sees the working folder and the run folder under the same paths.
"""
