"""A mixture of Gaussians: its scores are scikit-learn's."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler, normalize

from sagl.baselines import GMM
from sagl.evaluation import clustering_accuracy
from tests.conftest import clustered_views


def components(views, dimension):
    x = np.hstack(
        [
            normalize(StandardScaler().fit_transform(a.astype(float)))
            for _, a in views.items()
        ]
    )
    pca = PCA(dimension).fit(x)
    return pca.transform(x) / np.sqrt(pca.explained_variance_.sum())


@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_scores_are_those_of_scikit_learn(covariance):
    views, labels = clustered_views(spread=1.0)
    ours = GMM(4, covariance=covariance, dimension=6, random_state=0).fit(views)
    z = components(views, 6)
    theirs = GaussianMixture(4, covariance_type=covariance, n_init=5, random_state=0)
    theirs.fit(z)
    assert clustering_accuracy(theirs.predict(z), ours.labels_) > 0.99
    scores = ours.decision_function(views)
    ours_p = np.exp(scores - scores.max(axis=1, keepdims=True))
    ours_p /= ours_p.sum(axis=1, keepdims=True)
    theirs_p = theirs.predict_proba(z)
    # The same densities, whatever the order of the clusters.
    np.testing.assert_allclose(
        np.sort(ours_p, axis=1), np.sort(theirs_p, axis=1), atol=1e-2
    )
    assert clustering_accuracy(labels, ours.labels_) > 0.9


def test_no_more_components_than_there_are(views):
    model = GMM(3, dimension=50).fit(views[:9])
    assert model.state_["centres"].shape == (3, 9)
