"""Clusters as a search: labels that linear maps and a graph can both predict.

``space``      standardised samples, ridge regressions that leave one out, a graph
``score``      how good labels are, without knowing the truth
``evidence``   what speaks for each cluster, whatever the sizes of the clusters
``anneal``     soft labels that sharpen while maps and graph learn to predict them
``weights``    how much each view counts
``spectral``   eigenvectors of an affinity, and clusters among their rows
``proposals``  spectral clusters of the graph, consensus of several partitions
``search``     many proposals, annealed, the best one by score
``unequal``    clusters of unequal sizes, where the evidence for them is clear
``readout``    a network that predicts given labels
``vote``       how much the neighbours of a sample have to say beside the network
"""
