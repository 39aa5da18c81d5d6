"""What the rules compute, and what must not happen at the edges: lost scrapes, missing series, ends of windows."""

from __future__ import annotations

from pathlib import Path

from exporter import exposition, queues
from exporter.sources import held
from exporter.sources.database import statistics
from exporter.sources.redis import horizon
from exporter.sources.sqs import metrics as sqs

from .case import DEFAULT
from .promtool import ONE, a_test, check, complaints, firing, series, silence, value, write
from .worlds import BEGINS, LONG, UP, World, always, counting, faster, healthy, of, step

AT = ("database", "default")
PAGES_OF_DEFAULT = {**ONE, **DEFAULT}


def content(folder: Path, world: World, alerts: list[dict[str, object]], values: list[dict[str, object]]) -> str:
    """What promtool complains of in this world."""
    return complaints(write(folder / "test.yml", [a_test("test", series(world, ONE), alerts, values)]))


def test_a_lost_scrape_ends_no_page(tmp_path: Path) -> None:
    """Case 81: while two minutes of samples are missing the page goes on, and it is the same one afterwards."""
    late = f"2x{BEGINS - 1} 500x9 stale _ 500x{LONG}"
    says = "The oldest job of database/default has been waiting for 8m 20s, longer than its target wait."
    fires = firing("WaitTooLong", PAGES_OF_DEFAULT, says)
    minutes = [BEGINS + minute for minute in (4, 9, 10, 11, 12, 13, 20)]
    world = healthy("database") | {of(queues.OLDEST_JOB_AGE, *AT): late}
    assert content(tmp_path, world, [check(minute, "WaitTooLong", fires) for minute in minutes], []) == ""


def test_one_failed_scrape_or_poll_pages_nobody(tmp_path: Path) -> None:
    """Case 81: a scrape that failed once, and a minute in which the database was away, as in a failover."""
    once = f"1x{BEGINS} 0 1x{LONG}"
    world = healthy("database") | {
        UP: once,
        of(exposition.UP, "database", "jobs"): step(1, 0, minutes=3),
        of(exposition.FRESH, "database", "jobs"): step(1, 0, minutes=3),
        of(queues.OLDEST_JOB_AGE, *AT): f"2x{BEGINS - 1} _ _ _ 90 2x{LONG}",
    }
    checks = [each for minute in range(1, 12) for each in silence(BEGINS + minute)]
    assert content(tmp_path, world, checks, []) == ""


def test_nothing_failed_is_a_ratio_of_nothing(tmp_path: Path) -> None:
    """Case 84: a queue with work done and no series of failures has the ratio 0, under its own name."""
    labels = 'connection="redis", instance="exporter-1:10087", job="laravel-queue-exporter", queue="mail"'
    name = "connection_queue:laravel_queue_failures_per_completion:ratio15m"
    of_mail = value(60, f'{name}{{queue="mail"}}', (f"{name}{{{labels}}}", 0.0))
    assert content(tmp_path, healthy("redis"), [], [of_mail]) == ""


def test_no_series_is_without_its_labels(tmp_path: Path) -> None:
    """Case 84: whatever is recorded says of which connection, or of which queue, it is."""
    values = [
        value(60, 'count({__name__=~"connection:.+", connection=""})'),
        value(60, 'count({__name__=~"connection_queue:.+", queue=""})'),
        value(60, 'count({__name__=~"connection:.+", queue!=""})'),
    ]
    files = [
        write(tmp_path / f"{driver}.yml", [a_test(driver, series(healthy(driver), ONE), [], values)])
        for driver in ("database", "redis", "sqs")
    ]
    assert complaints(*files) == ""


def test_a_rerun_never_becomes_a_page(tmp_path: Path) -> None:
    """A worker dies and its job is started again: a ticket from the beginning to the end of all windows."""
    died = of(held.PAST_TIMEOUT, *AT)
    world = healthy("database") | {
        died: step(0, 1, minutes=1),
        of(held.REPEATED, *AT): f"0x{BEGINS + 2} 1x{LONG}",
    }
    checks = [check(BEGINS + minute, "JobsReservedTwice") for minute in range(30)]
    assert content(tmp_path, world, checks, []) == ""


def test_capacity_follows_littles_law(tmp_path: Path) -> None:
    """30,000 jobs an hour of 1.5 s are 12.5 busy workers; 12.5 + 2 × √12.5 is 20 of them."""
    world = healthy("database") | {
        of(statistics.INSERTED, "database", "jobs"): counting(500),
        of(statistics.DELETED, "database", "jobs"): counting(500),
        of(queues.JOBS, *AT, "reserved"): always(12.5),
        of(queues.JOBS, "database", "emails", "reserved"): always(0),
    }
    expected = {
        "connection:laravel_queue_job_duration_seconds:mean30m": 1.5,
        "connection:laravel_queue_offered_load:mean30m": 12.5,
        "connection:laravel_queue_workers_needed:ceil30m": 20,
        "connection:laravel_queue_workers:sum": 7,
    }
    values = [value(60, f"round(sum({name}), 0.001)", ("{}", number)) for name, number in expected.items()]
    assert content(tmp_path, world, [], values) == ""


def test_throughput_has_one_name_on_all_drivers(tmp_path: Path) -> None:
    """Completions a second of a table, of Horizon's queues (failures among them), and of CloudWatch's."""
    fallen = of(queues.FAILED_TOTAL, "redis", "default", queues.OTHER)
    worlds: dict[str, tuple[World, float, float | None]] = {
        "database": (healthy("database"), 2.0, 2.0),
        "redis": (healthy("redis") | {fallen: counting(6)}, 1.2, None),  # nobody counts arrivals
        "sqs": (healthy("sqs"), 2.0, 2.0),
    }
    files = []
    for driver, (world, done, came) in worlds.items():
        arrived = [("{}", came)] if came is not None else []
        values = [
            value(30, "round(sum(connection:laravel_queue_completions:rate5m), 0.001)", ("{}", done)),
            value(30, "round(sum(connection:laravel_queue_arrivals:rate5m), 0.001)", *arrived),
        ]
        files.append(write(tmp_path / f"{driver}.yml", [a_test(driver, series(world, ONE), [], values)]))
    assert complaints(*files) == ""


def test_time_to_drain_is_how_long_the_backlog_lasts(tmp_path: Path) -> None:
    """600 jobs of which 10 fewer wait each minute are gone in an hour; a backlog that grows has no such time."""
    world = healthy("sqs") | {
        of(queues.JOBS, "sqs", "mail.fifo", "ready"): f"800-10x{LONG}",
        of(queues.JOBS, "sqs", "exports", "ready"): f"4+1x{LONG}",
    }
    values = [value(20, "round(sum(connection_queue:laravel_queue_drain_seconds:ratio10m))", ("{}", 3600.0))]
    assert content(tmp_path, world, [], values) == ""


def test_scaling_up_and_down_once_is_no_flapping(tmp_path: Path) -> None:
    """Three tasks more, one by one, and three fewer within an hour are what one wants of a scaling."""
    tasks = "4x9 " + " ".join(f"{n}x3" for n in (*range(5, 8), *range(6, 3, -1))) + f" 4x{LONG}"
    world = healthy("sqs") | {of(which, "sqs", "mail.fifo"): tasks for which in (sqs.DESIRED, sqs.RUNNING)}
    assert content(tmp_path, world, silence(70, ["EcsTasksFlapping"]), []) == ""


def test_a_supervisor_of_others_is_not_missed(tmp_path: Path) -> None:
    """A queue for which Horizon runs nothing is no trouble while nothing waits in it."""
    world = healthy("redis") | {
        of(horizon.PROCESSES, "redis", "mail"): faster(0, 0),
        of(queues.JOBS, "redis", "mail", "ready"): always(0),
    }
    assert content(tmp_path, world, silence(60, ["HorizonNoProcesses"]), []) == ""
