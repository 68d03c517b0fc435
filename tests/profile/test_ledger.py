"""The ledger of tensor programs: bytes, FLOPs, launches and memory derived by hand, and PyTorch's own FLOP
counter."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import gpulab  # noqa: E402
from gpulab.analysis.profile.ledger import foreach_launches, ledger  # noqa: E402
from gpulab.analysis.profile.tensors import COUNTS, TensorReport, record  # noqa: E402


def costs(run, *args) -> list[tuple]:
    """(operation, bytes read, bytes written, FLOPs, launches) of each entry."""
    with ledger() as book:
        run(*args)
    return [(e.op, e.bytes_read, e.bytes_written, e.flops, e.launches) for e in book.entries]


def test_an_elementwise_sum_reads_two_and_writes_one():
    """1000 float32: 4,000 B each."""
    x, y = torch.ones(1000), torch.ones(1000)
    assert costs(torch.add, x, y) == [("add", 8000, 4000, 1000, 1)]


def test_a_matrix_product_reads_its_operands_once_and_takes_two_flops_per_multiply_add():
    """(8 × 16)·(16 × 4): 2·8·16·4 FLOPs; 4·(128 + 64) B read, 4·32 B written."""
    assert costs(torch.matmul, torch.ones(8, 16), torch.ones(16, 4)) == [("mm", 768, 128, 1024, 1)]


def test_views_cost_nothing_and_a_copy_costs_both_ways():
    x = torch.ones(10, 20)
    assert costs(lambda: x.t().contiguous()[:, 5:].unsqueeze(0)) == [("clone", 800, 800, 0, 1)]
    assert costs(lambda: x.view(200).expand(3, 200).detach()) == []


def test_an_expanded_axis_is_read_once():
    """A bias of 20 floats added to 10 rows: 800 + 80 B read."""
    assert costs(lambda: torch.ones(10, 20) + torch.ones(20).expand(10, 20))[-1] == ("add", 880, 800, 200, 1)


def test_in_place_operations_read_and_write_their_target_and_fills_only_write():
    x = torch.ones(100)
    assert costs(lambda: x.mul_(2)) == [("mul_", 400, 400, 100, 1)]
    assert costs(lambda: x.fill_(2)) == [("fill_", 0, 400, 0, 1)]
    assert costs(lambda: x.copy_(torch.ones(100)))[-1] == ("copy_", 400, 400, 0, 1)


def test_a_gather_reads_the_rows_that_it_takes():
    """4 of 1000 rows of 8 floats, and 4 int64 indices."""
    table, rows = torch.ones(1000, 8), torch.tensor([1, 5, 5, 9])
    assert costs(lambda: nn.functional.embedding(rows, table)) == [("embedding", 4 * 8 + 4 * 32, 128, 0, 1)]


def test_eager_softmax_of_attention_moves_the_score_matrix_again_and_again():
    """n × n float32 scores: written by the product, read and written by scale and softmax, read by the
    second."""
    n, d = 128, 32
    q, k, v = (torch.ones(n, d) for _ in range(3))
    entries = costs(lambda: torch.softmax((q @ k.t()) * 0.5, -1) @ v)
    square, slim = 4 * n * n, 4 * n * d
    assert [e[0] for e in entries] == ["mm", "mul", "_softmax", "mm"]
    assert sum(e[1] + e[2] for e in entries) == 6 * square + 4 * slim


@pytest.mark.parametrize("backward", [False, True])
def test_matrix_flops_are_those_of_pytorchs_own_counter(backward):
    model = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    conv = nn.Conv1d(32, 32, 3)
    x = torch.randn(2, 10, 32)

    def step():
        out = conv(model(x).transpose(1, 2)).square().mean()
        if backward:
            out.backward()

    with FlopCounterMode(display=False) as counter:
        step()
    with ledger() as book:
        step()
    assert sum(e.matrix_flops for e in book.entries) == counter.get_total_flops() > 0


def test_fake_tensors_cost_what_real_ones_cost():
    def run():
        x = torch.ones(64, 64, requires_grad=True)
        torch.softmax(x @ x, -1).sum().backward()

    real = costs(run)
    with FakeTensorMode():
        assert costs(run) == real


def test_the_peak_is_what_lives_at_once():
    """x is given. y, z and their sum live together: 3 × 4,000 B; y and z are gone before w is made."""
    x = torch.ones(1000)

    def run():
        y, z = x + 1, x + 2
        total = y + z
        del y, z
        return total * 2

    with ledger() as book:
        run()
    assert book.peak == 12_000
    assert [e.memory for e in book.entries] == [4000, 8000, 12000, 8000]


def test_the_lives_of_tensors_are_those_of_the_peak():
    """y and z live until their sum is made in operation 2, the sum until the last, the last to the end."""
    x = torch.ones(1000)
    with ledger() as book:
        y, z = x + 1, torch.cat([x, x])
        total = y + z[:1000]
        del y, z
        last = total * 2
        del total
        last = last.sin_()
    alive = book.lives()
    assert alive == [(4000, 0, 3), (8000, 1, 3), (4000, 3, 4), (4000, 4, 5)]
    at_once = [sum(size for size, first, last in alive if first <= now <= last) for now in range(6)]
    assert max(at_once) == book.peak == 16_000
    del last


def test_activations_kept_for_backward_count_as_held():
    """Each of four tanh keeps its output, 4,000 B, until backward."""
    x = torch.ones(1000, requires_grad=True)
    with ledger() as book:
        y = x
        for _ in range(4):
            y = torch.tanh(y)
    assert book.entries[-1].memory == 16_000
    del y


@pytest.mark.parametrize(
    "sizes, lists, launches",
    [
        ([100] * 110, 1, 1),  # as many tensors as one launch takes
        ([100] * 111, 1, 2),
        ([100] * 148, 4, 5),  # 36 tensors a launch
        ([65_536 * 320], 1, 1),  # as many blocks as one launch takes
        ([65_536 * 321], 1, 2),
        ([], 1, 0),
    ],
)
def test_multi_tensor_operations_are_cut_into_launches(sizes, lists, launches):
    assert foreach_launches(sizes, lists) == launches


def test_an_optimiser_over_many_tensors_launches_far_less_when_fused():
    parameters = [nn.Parameter(torch.randn(50 + i)) for i in range(148)]
    for p in parameters:
        p.grad = torch.randn_like(p)
    launches = {}
    for how in ("single", "foreach", "fused"):
        choice = {"single": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}[how]
        optimiser = torch.optim.AdamW(parameters, **choice)
        optimiser.step()
        launches[how] = record(optimiser.step).launches
    assert launches["single"] > 1000 > 100 > launches["foreach"] > 12 > launches["fused"]


def test_a_fused_optimiser_reads_four_tensors_and_writes_three():
    """1000 float32: 4,000 B each; the step count of 4 B is read. The gradient stays as it is."""
    p, g, m, v = (torch.ones(1000) for _ in range(4))
    how = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8}

    def run(**more):
        torch._fused_adamw_(
            [p], [g], [m], [v], [], [torch.ones(())], **how, amsgrad=False, maximize=False, **more
        )

    assert costs(run)[-1][1:3] == (16_004, 12_000)
    assert costs(lambda: run(grad_scale=torch.ones(())))[-1][1:3] == (16_008, 16_000)


def test_results_in_a_new_list_make_a_multi_tensor_launch_hold_fewer():
    """64 tensors of two lists fit into a launch, 110 of one."""
    tensors = [torch.ones(3) for _ in range(110)]
    assert costs(lambda: torch._foreach_sqrt_(tensors))[0][-1] == 1
    assert costs(lambda: torch._foreach_sqrt(tensors))[0][-1] == 2
    assert costs(lambda: torch._foreach_norm(tensors))[0][-1] == 2  # one over all, one for the partial sums


def test_many_tensors_are_put_side_by_side_128_at_a_time():
    tensors = [torch.ones(2) for _ in range(129)]
    assert costs(lambda: torch.stack(tensors[1:]))[0][-1] == 1
    assert costs(lambda: torch.cat(tensors))[0][-1] == 2


def test_in_inference_mode_the_parts_of_an_operation_are_seen():
    x, w = torch.ones(2, 5, 3), torch.ones(4, 3)

    def run():
        with torch.inference_mode():
            nn.functional.cross_entropy(
                nn.functional.linear(x, w).reshape(-1, 4), torch.zeros(10, dtype=torch.long)
            )

    assert {"_log_softmax", "nll_loss_forward"} <= {e[0] for e in costs(run)}


def test_a_listener_hears_every_operation_and_may_change_what_it_is_carried_out_on():
    heard = []

    class Halves:
        def before(self, func, args, kwargs):
            return (args[0] * 0.5, *args[1:]), kwargs

        def after(self, func, args, kwargs, out):
            heard.append(func._schema.name)

    x = torch.ones(4)
    with ledger(Halves()) as book:
        y = torch.add(x, 1)
    assert y.tolist() == [1.5] * 4 and heard == ["aten::add"] and len(book.entries) == 1


def test_a_report_gives_its_counts_by_name():
    report = record(lambda x: (x @ x).add_(1).sum(), torch.ones(16, 16))
    named = {
        name: report[name] for name in ("launches", "matrix_flops", "peak_bytes", "syncs", "calls of add")
    }
    assert named == {
        "launches": 3,
        "matrix_flops": 2 * 16**3,
        "peak_bytes": 1028,
        "syncs": 0,
        "calls of add": 1,
    }
    assert (report["bytes"], report["flops"]) == (report.bytes, report.flops)
    assert dict(report) == {name: report[name] for name in COUNTS} and "syncs" in report and 0 not in report
    with pytest.raises(gpulab.profile.UnknownMetric, match="launches"):
        report["sectors"]


def test_asking_for_a_number_makes_the_host_wait():
    report = record(lambda: torch.ones(10).sum().item())
    assert report.total.syncs == 1


def test_profile_gives_the_ledger_of_a_tensor_program_and_it_survives_json():
    report = gpulab.profile(lambda: torch.ones(64, 64) @ torch.ones(64, 64))
    assert isinstance(report, TensorReport)
    assert report.by_op["mm"].flops == 2 * 64**3
    assert TensorReport.from_dict(report.to_dict()) == report
    assert "mm" in str(report) and "<table" in report._repr_html_()


@pytest.mark.parametrize(
    ("operation", "flops"),
    [
        (lambda a: torch.add(a, a, alpha=2), 2),
        (lambda a: torch.addcmul(a, a, a), 2),
        (lambda a: torch.addcdiv(a, a, a, value=-1), 3),
        (lambda a: torch.lerp(a, a, 0.5), 3),
        (lambda a: torch._foreach_addcmul_([a], [a], [a], 0.5), 3),
        (lambda a: torch._foreach_add([a], [a]), 1),
    ],
)
def test_operations_that_are_several_in_one_take_as_many_flops(operation, flops):
    a = torch.ones(100)
    with ledger() as book:
        operation(a)
    assert sum(entry.flops for entry in book.entries) == 100 * flops


@pytest.mark.parametrize(
    ("waits", "operation"),
    [
        (1, lambda a: a[a > 0]),
        (1, lambda a: a.unique()),
        (1, lambda a: a.repeat_interleave(torch.ones(8, dtype=torch.int64))),
        (0, lambda a: a.repeat_interleave(torch.ones(8, dtype=torch.int64), output_size=8)),
        (0, lambda a: a.masked_fill_(a > 0, 1.0)),
        (0, lambda a: a.__setitem__(a > 0, 1.0)),
        (0, lambda a: a[torch.tensor([1, 2])]),
    ],
)
def test_sizes_that_depend_on_values_make_the_host_wait(waits, operation):
    with ledger() as book:
        operation(torch.ones(8))
    assert sum(entry.syncs for entry in book.entries) == waits


def test_a_mask_as_index_is_two_launches():
    a, mask = torch.ones(8), torch.ones(8, dtype=torch.bool)
    with ledger() as book:
        a[mask]
    assert [(entry.op, entry.launches) for entry in book.entries] == [("index", 2)]


def test_a_copy_to_the_host_waits_unless_it_need_not_block():
    with FakeTensorMode(), ledger() as book:
        there = torch.empty(8, device="cuda")
        there.cpu()
        there.to("cpu", non_blocking=True)
        torch.empty(8).copy_(there)
    assert [(entry.launches, entry.syncs) for entry in book.entries] == [(0, 1), (0, 0), (0, 1)]
