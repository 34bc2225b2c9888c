"""The recipe for Lightning in docs/training.md: a run that stopped goes on with the batch that was next."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cdd
from tests.ecosystem.book_windows import BOOK, ROWS, windows_in

torch = pytest.importorskip("torch", exc_type=ImportError)
lightning = pytest.importorskip("lightning.pytorch", exc_type=ImportError)
import cdd.torch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of Lightning's own
EPOCHS, BATCHES = 3, 15


class Model(lightning.LightningModule):
    def __init__(self, seen: list[list[float]], stop: int | None = None) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.linear = torch.nn.Linear(ROWS * 18, 1)
        self.seen, self.stop = seen, stop

    def training_step(self, batch: Any, _: int) -> Any:
        self.seen.append(batch["book"][:, 0, 0, 0].tolist())
        return (self.linear(batch["book"].flatten(1))[:, 0] - batch["book"][:, -1, 0, 0]).square().mean()

    def on_train_batch_end(self, *_: Any) -> None:
        if len(self.seen) == self.stop:
            self.trainer.save_checkpoint(self.trainer.default_root_dir + "/stopped.ckpt")
            raise KeyboardInterrupt

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.01)


def trainer_in(folder: Path) -> Any:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    quiet["enable_checkpointing"] = False
    return lightning.Trainer(
        max_epochs=EPOCHS, accelerator="cpu", use_distributed_sampler=False, default_root_dir=folder, **quiet
    )


class Books(lightning.LightningDataModule):
    def __init__(self, windows: cdd.Windows) -> None:
        super().__init__()
        self.windows = windows

    def train_dataloader(self) -> Any:
        rank, world = self.trainer.global_rank, self.trainer.world_size
        return cdd.torch.Loader(self.windows, 64, seed=1, rank=rank, world=world)


@pytest.mark.parametrize("stop", [4, BATCHES + 1, 2 * BATCHES - 1])
def test_a_run_that_stopped_goes_on_with_the_next_batch(stop: int, tmp_path: Path) -> None:
    windows = windows_in(tmp_path)
    unbroken: list[list[float]] = []
    whole = Model(unbroken)
    trainer_in(tmp_path).fit(whole, datamodule=Books(windows))
    assert len(unbroken) == EPOCHS * BATCHES
    orders = [unbroken[at : at + BATCHES] for at in range(0, len(unbroken), BATCHES)]
    assert orders[0] != orders[1] != orders[2]
    assert set(np.concatenate(orders[0]).tolist()) <= set(BOOK[:, 0, 0].tolist())

    seen: list[list[float]] = []
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        trainer_in(tmp_path).fit(Model(seen, stop), datamodule=Books(windows))
    assert seen == unbroken[:stop]
    resumed = Model(seen)
    trainer_in(tmp_path).fit(resumed, datamodule=Books(windows), ckpt_path=str(tmp_path / "stopped.ckpt"))
    assert seen == unbroken
    assert torch.equal(resumed.linear.weight, whole.linear.weight)


def test_the_recipe_is_the_pages() -> None:
    page = (Path(__file__).resolve().parent.parent.parent / "docs/training.md").read_text()
    (recipe,) = re.findall(r"```python\n(class Books.*?)```", page, re.DOTALL)
    assert "cdd.torch.Loader(windows, 256, seed=1, rank=rank, world=world)" in recipe
    assert "use_distributed_sampler=False" in recipe
