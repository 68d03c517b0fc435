"""``malloc``, ``free``, ``new`` and ``delete`` in kernels."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.simulator import simt
from gpulab.simulator.simt.heap import Heap

from .engines import each_engine as each_engine
from .launching import SCHEDULES
from .test_kept_functions import BLOCKS, THREADS, kernel, per_thread, results

both = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)

LIST = kernel(
    """
    struct Node { int value; Node *next; };
    __device__ int sum_of_list(int n) {
        Node *first = nullptr;
        for (int i = 0; i < n; i++) first = new Node{i * i, first};
        int sum = 0;
        for (Node *node = first; node; node = node->next) sum = 2 * sum + node->value;
        while (first) { Node *next = first->next; delete first; first = next; }
        return sum;
    }""",
    "sum_of_list(at % 8)",
)


@both
def test_threads_make_lists_of_new_nodes_and_delete_them(schedule):
    def sum_of_list(n: int) -> int:
        total = 0
        for i in reversed(range(n)):
            total = 2 * total + i * i
        return total

    assert results(LIST, schedule).tolist() == per_thread(lambda at: sum_of_list(at % 8))


@both
def test_new_objects_have_their_virtual_functions(schedule):
    source = kernel(
        """
        struct Shape { __device__ virtual int area() const = 0; __device__ virtual ~Shape() {} };
        struct Square : Shape {
            int a; __device__ Square(int a) : a(a) {}
            __device__ int area() const override { return a * a; }
        };
        struct Strip : Shape {
            int a; __device__ Strip(int a) : a(a) {}
            __device__ int area() const override { return 7 * a; }
        };
        __device__ int start(int n) {
            Shape *shape = n % 3 ? (Shape *)new Square(n) : (Shape *)new Strip(n);
            int area = shape->area();
            delete shape;
            return area;
        }""",
        "start(at)",
    )
    assert results(source, schedule).tolist() == per_thread(lambda at: at * at if at % 3 else 7 * at)


def test_malloc_gives_null_when_the_heap_is_full_and_memory_again_after_a_free():
    source = kernel(
        """
        __device__ int start(int at) {
            if (at) return 0;
            char *blocks[40];
            int n = 0;
            while (n < 40 && (blocks[n] = (char *)malloc(1000))) blocks[n++][999] = n;
            free(blocks[3]);
            char *again = (char *)malloc(900), *none = (char *)malloc(900);
            return n * 100 + (again == blocks[3] + 0) * 10 + (again && !none);
        }""",
        "start(at)",
    )
    room = 16 * 1024
    fit = room // (
        1000 // 16 * 16 + 16 + 16
    )  # each block has whole pieces of 16 bytes, and an empty one behind
    found = results(source, heap_bytes=room)[0]
    assert found // 100 == fit
    assert found % 10 == 1


def test_the_heap_keeps_its_blocks_from_one_launch_to_the_next_and_a_journal_takes_them_back():
    memory = simt.Memory()
    heap = Heap(memory, 1024)
    first = heap.take(100)
    journal = simt.Journal(memory)
    memory.journal = journal
    second = heap.take(100)
    assert heap.give_back(first) == ""
    journal.restore()
    assert Heap(memory, 1024).take(100) == second
    assert heap.give_back(first) == ""
    assert "freed before" in heap.give_back(first)


def test_no_two_blocks_overlap_and_all_memory_comes_back():
    draw = np.random.default_rng(5)
    heap = Heap(simt.Memory(), 4096)
    blocks: dict[int, int] = {}
    for _ in range(3000):
        if blocks and draw.random() < 0.5:
            address = list(blocks)[draw.integers(len(blocks))]
            assert heap.give_back(address) == ""
            del blocks[address]
        elif address := heap.take(nbytes := int(draw.integers(1, 300))):
            assert address % 16 == 0
            assert all(address + nbytes <= a or a + n <= address for a, n in blocks.items())
            blocks[address] = nbytes
    assert heap.left() == (len(blocks), sum(-(-nbytes // 16) * 16 for nbytes in blocks.values()))
    for address in blocks:
        heap.give_back(address)
    assert heap.left() == (0, 0)
    assert heap.take(4096)


WRONG = """
extern "C" __global__ void kernel(int *out) {
    int *block = (int *)malloc(64);
    int t = threadIdx.x;
    block[0] = t;
    WHAT
    *out = block[INDEX];
}"""


@pytest.mark.parametrize(
    ("what", "index", "fault", "said"),
    [
        ("if (t == 3) { free(block); free(block); }", 0, simt.WrongFree, "that block was freed before"),
        ("if (t == 3) free(block + 1);", 0, simt.WrongFree, "lies inside a block, not at its start"),
        ("if (t == 3) free(out);", 0, simt.WrongFree, "malloc never gave it that address"),
        ("if (t == 3) free(block);", 0, simt.OutOfBounds, "belong to no block of malloc() or new: they were freed"),
        ("if (t == 3) block[16] = 1;", 0, simt.OutOfBounds, "wrote 4 bytes of the heap that belong to no block"),
        ("", 16, simt.OutOfBounds, "read 4 bytes of the heap that belong to no block of malloc() or new."),
    ],
)  # fmt: skip
def test_wrong_uses_of_the_heap_are_found(what, index, fault, said):
    with pytest.raises(fault) as found:
        results(WRONG.replace("WHAT", what).replace("INDEX", str(index)))
    assert said in str(found.value)
    if what:
        assert "line 6" in str(found.value) or "line 7" in str(found.value)
        assert "thread (3, 0, 0)" in str(found.value)


def test_freeing_null_does_nothing():
    assert results(kernel("", "(free(nullptr), at)")).tolist() == list(range(BLOCKS * THREADS))
