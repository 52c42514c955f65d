import threading

from experiments.progress import tracked


def test_a_bar_needs_no_thread_that_a_later_bar_could_wait_for():
    before = threading.active_count()
    left_open = tracked(range(3))
    assert next(left_open) == 0
    assert threading.active_count() == before
    assert list(tracked(range(3))) == [0, 1, 2]
    left_open.close()


def test_every_item_comes_in_order():
    assert list(tracked(iter("abc"), "letters", total=3)) == ["a", "b", "c"]
