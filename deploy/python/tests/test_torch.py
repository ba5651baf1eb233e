"""Networks and data of PyTorch."""

import numpy as np
import pytest
from conftest import bars

import pysyncopate as ps

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

FEW = {"epochs": 2, "progress": False, "batch_size": 32}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.drop = torch.nn.Dropout(0.2)
        self.head = torch.nn.Linear(8 * 6 * 6, 4)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.norm(self.conv(x))), 2)
        return self.head(self.drop(x.flatten(1)))


def scores(net, x):
    with torch.no_grad():
        return torch.softmax(net.eval()(torch.from_numpy(x)), 1).numpy()


@pytest.fixture
def pictures():
    return bars(channels_first=True)


def test_scores_are_those_of_the_program(pictures):
    run = ps.train(Net(), pictures, **FEW)
    net = run.load_into(Net())
    assert np.abs(scores(net, pictures[0]) - run.predict(pictures[0])).max() < 1e-6
    assert set(run.state_dict()) == set(Net().state_dict()) - {"norm.num_batches_tracked"}


def test_begins_with_the_weights_of_the_module(pictures):
    net = Net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    run = ps.train(net, pictures, progress=False, learning_rate=1e-30, steps=1)
    after = run.state_dict()
    for name in ("conv.weight", "norm.bias", "head.weight"):
        assert torch.allclose(before[name], after[name], atol=1e-20), name
    assert net.training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_a_data_set_gives_the_weights_of_its_arrays(pictures):
    tensors = tuple(map(torch.from_numpy, pictures))
    dataset = torch.utils.data.TensorDataset(*tensors)
    torch.manual_seed(0)
    net = Net()
    hashes = {
        ps.train(net, data, test=data, **FEW).hash
        for data in (pictures, tensors, dataset, torch.utils.data.DataLoader(dataset, batch_size=50))
    }
    assert len(hashes) == 1


def test_compares_a_module(pictures):
    report = ps.compare(
        Net(), pictures, strategies=["one-device", "mirrored"], workers=2, seeds=2, epochs=1, progress=False
    )
    assert report.verdict


def test_trains_on_numbers():
    random = np.random.default_rng(0)
    x = random.normal(size=(400, 6)).astype("float32")
    y = x[:, 0] - 2 * x[:, 1]
    net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    run = ps.train(net, (x, y), loss="mean-squared-error", epochs=30, learning_rate=0.01, progress=False)
    assert run.accuracy is None
    assert run.loss < 0.5
    assert run.predict(x).shape == (400, 1)


def test_needs_a_shape_for_named_data():
    with pytest.raises(ps.UsageError, match="input_shape"):
        ps.train(Net(), "digits", progress=False)
