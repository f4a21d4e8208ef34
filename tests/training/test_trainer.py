"""The trainer against a loop written by hand, its records, hooks and repeatability."""

import random
import warnings
from itertools import combinations, permutations
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sagl import SAGL, Views
from sagl.nn import Network, Objective, fused_step
from sagl.training import Callback, Plan, StopWhenStable, Trainer
from sagl.training.feed import Feed, set_standardization
from sagl.training.sampler import epoch_batches, step_seed
from tests.conftest import QUICK, clustered_views
from tests.nn.slow import slow_entmax

CPU = torch.device("cpu")
C = 4


@pytest.fixture(scope="module")
def three():
    """Three views of 120 samples."""
    views = clustered_views(120, C)[0]
    return Views({**dict(views.items()), "third": views["wide"][:, ::3] + 1})


def seeded_network(views, *, dtype=torch.float32, seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    network = Network(views.widths, C, generator=generator, **options).to(dtype)
    set_standardization(network, views, "center")
    return network


def trainer_of(views, network, *, objective=None, plan=None, callbacks=(), **feed):
    return Trainer(
        network,
        objective or Objective(10.0, 0.5, "linear"),
        Feed(views, network, CPU, **feed),
        plan or Plan(batch_size=40, steps=31, learning_rate=1e-2, seed=5),
        CPU,
        callbacks,
    )


def fit(views, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short training may leave clusters empty
        params = {"search": QUICK, "random_state": 0} | params
        params = {"n_clusters": C, "steps": 30} | params
        return SAGL(**params).fit(views)


def slow_view(p, options, h):
    """log q of one view from its parameters by name: METHOD.md, line by line."""
    v = p["encoder.v"]
    W = v / v.square().sum(dim=1, keepdim=True).sqrt() * p["encoder.g"][:, None]
    z = h @ W.T + p["encoder.b"]
    S = (z @ p["U"]) @ (z @ p["V"]).T / C**0.5
    if "gate.W1" in p:
        x = z if options["gate_input"] == "z" else h
        hidden = (x @ p["gate.W1"].T + p["gate.b1"]).clamp(min=0)
        omega = (hidden @ p["gate.W2"].T + p["gate.b2"]).sigmoid()  # (n, 1)
        shrink = options["gate"] == "shrink"
        S = S * (1 - omega if shrink else 1 / (1 - omega + 1e-6))
    A = slow_entmax(S, 1.5)
    q = (A @ z + z + p["bias"]).softmax(dim=1)
    return q.log()


def slow_loss(log_q, objective):
    """pseudo-label + γ · diversity + β · alignment, sample by sample."""
    q = [view.exp() for view in log_q]
    n, L = len(q[0]), len(q)
    y = (sum(q) / L).argmax(dim=1)
    linear = objective.pseudo_label_form == "linear"
    label = -sum(
        (q[k][i, y[i]] if linear else log_q[k][i, y[i]]) / n
        for k in range(L)
        for i in range(n)
    )
    times = L - 1 if objective.diversity_count == "pairs" else 1
    means = [view.mean(dim=0) for view in q]
    spread = times * sum((mean * mean.log()).sum() for mean in means)
    if objective.alignment_form == "symmetric":
        pairs = list(permutations(range(L), 2))
    else:  # the released code: −q^ν log q^μ for μ before ν
        pairs = [(nu, mu) for mu, nu in combinations(range(L), 2)]
    agreement = -sum((q[a] * log_q[b]).sum() / n for a, b in pairs)
    return label + objective.gamma * spread + objective.beta * agreement


FORMS = {
    "default": (Objective(10.0, 0.5, "linear", "symmetric", "views"), {}),
    "paper": (
        Objective(5.0, 1.0, "log", "symmetric", "views"),
        {"gate": "shrink", "gate_input": "z"},
    ),
    "released": (
        Objective(5.0, 0.5, "linear", "one-way", "pairs"),
        {"gate": "shrink", "gate_input": "features"},
    ),
    "sharpen": (
        Objective(5.0, 0.5, "linear", "symmetric", "views"),
        {"gate": "sharpen", "gate_input": "z"},
    ),
}


class GradientWatcher(Callback):
    """Keeps the gradient of the last step."""

    def on_step(self, trainer):
        named = trainer.network.named_parameters()
        self.gradients = {name: p.grad.clone() for name, p in named}


@pytest.mark.parametrize(("objective", "options"), FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("small", [True, False], ids=["by hand", "by autograd"])
def test_one_step_is_adam_on_the_paper_s_loss(
    three, objective, options, small, monkeypatch
):
    monkeypatch.setattr(fused_step, "takes", lambda network, n: small)
    network = seeded_network(three, dtype=torch.float64, **options)
    before = {k: v.clone() for k, v in network.named_parameters()}
    byhand = {k: v.clone().detach().requires_grad_() for k, v in before.items()}
    adam = torch.optim.Adam(byhand.values(), lr=1e-2)

    rows = next(epoch_batches(120, 40, seed=5, epoch=0))
    log_q = []
    for k, (_, array) in enumerate(three.items()):
        h = array.astype(np.float64) - array.mean(axis=0, dtype=np.float64)
        h *= 10 / np.linalg.norm(h, axis=1).mean()
        prefix = f"views.{k}."
        p = {n.removeprefix(prefix): t for n, t in byhand.items() if prefix in n}
        log_q.append(slow_view(p, options, torch.from_numpy(h[rows])))
    loss = slow_loss(log_q, objective)
    loss.backward()
    adam.step()

    plan = Plan(batch_size=40, steps=1, learning_rate=1e-2, seed=5)
    watcher = GradientWatcher()
    trainer = trainer_of(
        three, network, objective=objective, plan=plan, callbacks=[watcher]
    )
    trainer.run()
    # A record's sums are float32; all else here is float64.
    assert trainer.history[0]["loss"] == pytest.approx(loss.item(), rel=1e-6)
    for name, parameter in network.named_parameters():
        assert not torch.equal(parameter, before[name]), name
        torch.testing.assert_close(watcher.gradients[name], byhand[name].grad)
        torch.testing.assert_close(parameter, byhand[name].detach())
    assert trainer.labels[rows].tolist() == (
        torch.stack(log_q).exp().mean(dim=0).argmax(dim=1).tolist()
    )


def loop_by_hand(views, network, plan, objective):
    """All steps, and what the records should say, without the trainer."""
    feed = Feed(views, network, CPU)
    adam = torch.optim.Adam(network.parameters(), lr=plan.learning_rate)
    labels = np.full(len(views), -1)
    history, since = [], []
    step = epoch = 0
    network.train()
    while step < plan.steps:
        for rows in epoch_batches(len(views), plan.batch_size, plan.seed, epoch):
            generator = torch.Generator().manual_seed(step_seed(plan.seed, step))
            loss = objective(network(feed(rows), generator))
            adam.zero_grad()
            loss.total.backward()
            adam.step()
            step += 1
            new = loss.labels.numpy()
            since.append(([t.item() for t in loss.terms()], labels[rows] != new))
            labels[rows] = new
            if step == plan.steps:
                break
        epoch += 1
        if len(since) < 25 and step < plan.steps:
            continue
        terms = np.mean([terms for terms, _ in since], axis=0)
        graphs = [
            view.attention_graph(view.linear(h)).to_dense()
            for view, h in zip(network.view_networks, feed(rows), strict=True)
        ]
        history.append(
            {
                "step": step,
                "epoch": epoch,
                "loss": terms[0],
                "pseudo_label": terms[1],
                "diversity": terms[2],
                "alignment": terms[3],
                "changed": np.concatenate([moved for _, moved in since]).mean(),
                "clusters": len(set(labels.tolist()) - {-1}),
                "sparsity": [float((A != 0).double().mean()) for A in graphs],
            }
        )
        since = []
    return history, labels


@pytest.mark.parametrize(
    "plan",
    [
        Plan(batch_size=40, steps=31, learning_rate=1e-2, seed=5),
        Plan(batch_size=4, steps=45, learning_rate=1e-3, seed=6),
        Plan(batch_size=120, steps=27, learning_rate=1e-2, seed=7),
    ],
    ids=["3 steps per epoch", "30 steps per epoch", "1 step per epoch"],
)
def test_many_steps_are_the_loop_and_the_records_written_by_hand(three, plan):
    objective = Objective(10.0, 0.5, "linear")
    options = {"dropout": 0.2, "gate": "sharpen", "dtype": torch.float64}
    byhand = seeded_network(three, **options)
    history, labels = loop_by_hand(three, byhand, plan, objective)

    network = seeded_network(three, **options)
    trainer = trainer_of(three, network, objective=objective, plan=plan)
    trainer.run()
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(
            parameter, byhand.get_parameter(name), rtol=1e-9, atol=1e-9
        )
    assert len(history) >= 2
    assert [list(record) for record in trainer.history] == [list(r) for r in history]
    for ours, theirs in zip(trainer.history, history, strict=True):
        for field, value in theirs.items():
            assert ours[field] == pytest.approx(value, rel=1e-5), field
    assert trainer.labels.tolist() == labels.tolist()
    assert trainer.step == plan.steps
    assert trainer.epoch == history[-1]["epoch"]


class Watcher(Callback):
    """Writes down each call."""

    def __init__(self, name, calls):
        self.name, self.calls = name, calls

    def on_train_begin(self, trainer):
        assert trainer.network.training
        self.calls.append((self.name, "begin", trainer.step, len(trainer.history)))

    def on_step(self, trainer):
        self.calls.append((self.name, "step", trainer.step, len(trainer.history)))

    def on_record(self, trainer):
        assert trainer.history[-1]["step"] == trainer.step
        self.calls.append((self.name, "record", trainer.step, len(trainer.history)))

    def on_train_end(self, trainer):
        assert not trainer.network.training
        self.calls.append((self.name, "end", trainer.step, len(trainer.history)))


class StopAt(Callback):
    """Asks for an end at one step, in one hook."""

    def __init__(self, step, hook):
        self.step = step
        setattr(self, hook, self.ask)

    def ask(self, trainer):
        if trainer.step == self.step:
            trainer.stop = True


class TestCallbacks:
    def test_each_moment_comes_in_order_to_each_of_them(self, three):
        calls = []
        watchers = [Watcher("first", calls), Watcher("second", calls)]
        trainer_of(three, seeded_network(three), callbacks=watchers).run()

        expected = [("begin", 0, 0)]
        for step in range(
            1, 32
        ):  # three steps per epoch, a record at 27 and at the end
            expected.append(("step", step, 0 if step <= 27 else 1))
            if step in (27, 31):
                expected.append(("record", step, 1 if step == 27 else 2))
        expected.append(("end", 31, 2))
        both = [(n, *moment) for moment in expected for n in ("first", "second")]
        assert calls == both

    def test_watching_changes_nothing(self, three):
        watched, alone = seeded_network(three), seeded_network(three)
        trainer_of(three, watched, callbacks=[Watcher("x", [])]).run()
        trainer_of(three, alone).run()
        for name, tensor in watched.state_dict().items():
            assert torch.equal(tensor, alone.state_dict()[name])

    def test_the_base_class_does_nothing(self, three):
        trainer_of(three, seeded_network(three), callbacks=[Callback()]).run()

    def test_an_error_ends_the_training_for_all_of_them(self, three):
        """A progress bar must be closed, and the parameters be the network's own."""

        class Fail(Callback):
            def on_step(self, trainer):
                raise KeyboardInterrupt

        ended = []

        class End(Callback):
            def on_train_end(self, trainer):
                ended.append((trainer.step, trainer.finished))

        network = seeded_network(three)
        trainer = trainer_of(three, network, callbacks=[End(), Fail(), End()])
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
        assert ended == [(1, False), (1, False)]
        assert not network.training
        assert all(p.grad is None for p in network.parameters())

    def test_training_that_ended_is_finished(self, three):
        trainer = trainer_of(three, seeded_network(three))
        assert not trainer.finished
        trainer.run()
        assert trainer.finished

    def test_stop_ends_the_training_at_the_record(self, three):
        trainer = trainer_of(
            three, seeded_network(three), callbacks=[StopAt(27, "on_record")]
        )
        trainer.run()
        assert trainer.step == 27
        assert not trainer.network.training

    def test_the_callbacks_of_an_estimator_are_called(self, three):
        calls = []
        model = fit(three, batch_size=40, callbacks=[Watcher("mine", calls)])
        moments = [moment for _, moment, *_ in calls]
        assert moments.count("step") == model.n_steps_ == 30
        assert moments.count("record") == len(model.history_) == 2
        assert moments[0] == "begin"
        assert moments[-1] == "end"

    def test_a_callback_s_stop_in_a_record_ends_a_fit(self, three):
        stop = StopAt(27, "on_record")
        model = fit(three, batch_size=40, steps=60, callbacks=[stop])
        assert model.n_steps_ == 27

    def test_a_callback_s_stop_in_a_step_ends_a_fit(self, three):
        stop = StopAt(27, "on_step")
        model = fit(three, batch_size=40, steps=60, callbacks=[stop])
        assert model.n_steps_ == 27

    def test_the_progress_bar_is_on_stderr_alone(self, three, capsys):
        fit(three, steps=5, verbose=True)
        out, err = capsys.readouterr()
        assert out == ""
        assert "training" in err
        fit(three, steps=5, verbose=False)
        assert capsys.readouterr() == ("", "")


class TestStopWhenStable:
    @pytest.mark.parametrize("patience", [1, 2, 3])
    @pytest.mark.parametrize("tolerance", [0.0, 0.1, 1.0])
    def test_it_stops_at_the_first_long_enough_quiet(self, patience, tolerance):
        changes = [1.0, 0.1, 0.5, 0.1, 0.05, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0]
        callback = StopWhenStable(tolerance, patience)
        quiet = 0
        for k, change in enumerate(changes, start=1):
            quiet = quiet + 1 if change <= tolerance else 0
            trainer = SimpleNamespace(
                history=[{"changed": c} for c in changes[:k]], stop=False
            )
            callback.on_record(trainer)
            assert trainer.stop == (quiet >= patience)

    def test_a_training_ends_with_it(self, three):
        callbacks = [StopWhenStable(tolerance=1.0, patience=2)]
        plan = Plan(batch_size=40, steps=500, learning_rate=1e-3, seed=0)
        trainer = trainer_of(
            three, seeded_network(three), plan=plan, callbacks=callbacks
        )
        trainer.run()
        assert trainer.step == 54
        assert len(trainer.history) == 2

    def test_an_estimator_stops_when_its_clusters_are_stable(self, three):
        params = {"graph": "identity", "learning_rate": 0.01, "steps": 5000}
        params["recipe"] = "network"
        model = fit(three, tolerance=0.01, patience=3, **params)
        changed = [record["changed"] for record in model.history_]
        assert model.n_steps_ == model.history_[-1]["step"] < 5000
        quiet = [change <= 0.01 for change in changed]
        assert not all(quiet)
        assert all(quiet[-3:])
        assert not any(all(quiet[i : i + 3]) for i in range(len(quiet) - 3))


class TestDivergence:
    @pytest.mark.parametrize("graph", ["sparse", "dense", "identity"])
    def test_a_loss_that_is_no_number_names_the_learning_rate(self, three, graph):
        message = r"the loss became nan at step \d+; .*learning_rate \(now 1e\+38\)"
        with pytest.raises(FloatingPointError, match=message):
            fit(
                three,
                recipe="network",
                batch_size=40,
                steps=60,
                learning_rate=1e38,
                graph=graph,
            )

    def test_parameters_broken_by_the_last_step_are_noticed(self, three):
        with pytest.raises(FloatingPointError, match="learning_rate"):
            fit(three, steps=1, learning_rate=1e38)


def rng_states():
    kind, keys, *rest = np.random.get_state()
    return (
        torch.get_rng_state().tolist(),
        (kind, keys.tolist(), rest),
        random.getstate(),
    )


class TestRandomness:
    @pytest.mark.parametrize("random_state", [0, None])
    def test_global_generators_are_left_alone(self, three, random_state):
        before = rng_states()
        fit(three, random_state=random_state, dropout=0.3, gate="shrink", steps=10)
        assert rng_states() == before

    def test_global_generators_play_no_part(self, three):
        torch.manual_seed(1)
        np.random.seed(1)
        one = fit(three, dropout=0.3, steps=10)
        torch.manual_seed(2)
        np.random.seed(2)
        other = fit(three, dropout=0.3, steps=10)
        assert_same_bits(one, other)

    @pytest.mark.parametrize("recipe", ["default", "paper", "released"])
    def test_equal_seeds_give_equal_bits(self, three, recipe):
        params = {"recipe": recipe, "dropout": 0.2, "batch_size": 40}
        assert_same_bits(fit(three, **params), fit(three, **params))

    def test_other_seeds_give_other_parameters(self, three):
        one, other = (fit(three, random_state=seed, refine=False) for seed in (0, 1))
        for name, parameter in one.network_.named_parameters():
            assert not torch.equal(parameter, other.network_.get_parameter(name)), name

    def test_the_seed_decides_batches_and_dropout_too(self, three):
        """The same initial network, trained by plans that differ in the seed alone."""
        networks = []
        for seed, options in ((0, {}), (1, {}), (0, {"dropout": 0.5})):
            networks.append(seeded_network(three, **options))
            plan = Plan(batch_size=40, steps=3, learning_rate=1e-2, seed=seed)
            trainer_of(three, networks[-1], plan=plan).run()
        first, *others = (network.views[0].encoder.v for network in networks)
        assert not any(torch.equal(first, other) for other in others)

    @pytest.mark.parametrize("dropout", [0.0, 0.5])
    def test_dropout_alone_differs_between_steps(self, three, monkeypatch, dropout):
        class Repeat(Callback):
            def on_step(self, trainer):
                losses.append(trainer._sums[0].item() - sum(losses))
                trainer.network.load_state_dict(start)

        # Every step sees the same network and the same batch in the same order.
        monkeypatch.setattr(
            "sagl.training.trainer.epoch_batches", lambda n, *_: [np.arange(n)]
        )
        losses = []
        network = seeded_network(three, dropout=dropout)
        start = {k: v.clone() for k, v in network.state_dict().items()}
        plan = Plan(batch_size=120, steps=3, learning_rate=1e-2, seed=0)
        trainer_of(three, network, plan=plan, callbacks=[Repeat()]).run()
        gaps = [abs(one - other) for one, other in combinations(losses, 2)]
        assert max(gaps) < 1e-5 if dropout == 0 else min(gaps) > 1e-4

    def test_features_read_per_batch_train_to_the_same_bits(self, three, tmp_path):
        networks = [seeded_network(three) for _ in range(3)]
        files = {}
        for name, array in three.items():
            np.save(tmp_path / f"{name}.npy", array)
            files[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        trainer_of(three, networks[0]).run()
        trainer_of(three, networks[1], resident_bytes=0).run()
        trainer_of(Views(files), networks[2], resident_bytes=0).run()
        for other in networks[1:]:
            for name, tensor in networks[0].state_dict().items():
                assert torch.equal(tensor, other.state_dict()[name])


def assert_same_bits(one, other):
    for name, tensor in one.network_.state_dict().items():
        assert torch.equal(tensor, other.network_.state_dict()[name]), name
    assert one.history_ == other.history_
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.confidence_, other.confidence_)
