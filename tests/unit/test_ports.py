"""Ports on one machine: the manifest's own while it is free, another one otherwise."""

from fullrank.controllers.ports import FIRST, PortBook
from tests.build import a_job, gang_of

MASTER_AND_WORKER = {"Master": 1, "Worker": 1}


def test_the_first_job_keeps_the_port_of_its_manifest() -> None:
    book = PortBook(lambda _port: True)
    assert book.assign(gang_of(a_job("PyTorchJob", MASTER_AND_WORKER))) == {}


def test_a_second_job_gets_another_port_and_keeps_it() -> None:
    book = PortBook(lambda _port: True)
    book.assign(gang_of(a_job("PyTorchJob", MASTER_AND_WORKER, name="one")))
    two = a_job("PyTorchJob", MASTER_AND_WORKER, name="two")
    given = book.assign(gang_of(two))
    assert given == {"two-master-0": FIRST}
    two["metadata"]["annotations"] = {"fullrank.dev/ports": '{"two-master-0": 20000}'}
    assert book.assign(gang_of(two)) == given


def test_where_pods_have_networks_of_their_own_every_job_keeps_its_ports() -> None:
    book = PortBook(lambda _port: False, shared=False)
    for name in ("one", "two"):
        assert book.assign(gang_of(a_job("PyTorchJob", MASTER_AND_WORKER, name=name))) == {}


def test_a_port_that_a_stranger_listens_on_is_not_given() -> None:
    book = PortBook(lambda port: port not in (23456, FIRST))
    assert book.assign(gang_of(a_job("PyTorchJob", MASTER_AND_WORKER))) == {"demo-master-0": FIRST + 1}


def test_a_released_port_is_not_given_again_at_once() -> None:
    book = PortBook(lambda port: port != 23456)
    one = gang_of(a_job("PyTorchJob", MASTER_AND_WORKER, name="one"))
    book.assign(one)
    book.release(one.job.uid)
    assert book.assign(gang_of(a_job("PyTorchJob", MASTER_AND_WORKER, name="two"))) == {
        "two-master-0": FIRST + 1
    }


def test_a_job_found_running_holds_its_port() -> None:
    book = PortBook(lambda _port: True)
    book.hold(gang_of(a_job("PyTorchJob", MASTER_AND_WORKER, name="old")))
    assert book.assign(gang_of(a_job("PyTorchJob", MASTER_AND_WORKER, name="new"))) == {"new-master-0": FIRST}


def test_a_program_has_the_port_it_wants_or_keeps_another_that_it_was_lent() -> None:
    book = PortBook(lambda port: port != 8888)
    assert book.lend("a", 6006) == book.lend("a", 6006) == 6006
    assert book.lend("b", 6006) == book.lend("b", 6006) == FIRST
    assert book.lend("c", 8888) == FIRST + 1
    book.release("a")
    assert book.lend("d", 6006) == 6006


def test_a_program_whose_port_a_stranger_took_meanwhile_gets_another() -> None:
    taken = set[int]()
    book = PortBook(lambda port: port not in taken)
    book.note("a", 6006)
    taken.add(6006)
    assert book.lend("a", 6006) == FIRST


def test_where_nothing_is_shared_every_program_has_its_own_port() -> None:
    book = PortBook(lambda _port: False, shared=False)
    assert book.lend("a", 6006) == book.lend("b", 6006) == 6006
