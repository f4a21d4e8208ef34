"""Clusters as a search: labels that linear maps and a graph can both predict.

``space``      standardised samples, ridge regressions that leave one out, a graph
``score``      how good labels are, without knowing the truth
``evidence``   what speaks for each cluster, whatever the sizes of the clusters
``anneal``     soft labels that sharpen while maps and graph learn to predict them
``weights``    how much each view counts
``spectral``   k-means, and eigenvectors of an affinity to run it on
``proposals``  spectral clusters of the graph, consensus of several partitions
``moves``      two clusters merged and another split at once
``candidates`` many proposals, annealed and moved, the best one by score
``journal``    partitions so far, kept for a search that may be killed
``unequal``    clusters of unequal sizes, where they are told apart better
``stability``  which samples keep their cluster when the search starts elsewhere
``count``      how many clusters there are
"""
