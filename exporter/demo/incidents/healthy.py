"""A world in which nothing is wrong, and what an incident is."""

from __future__ import annotations

from dataclasses import dataclass

from ..plan import Arrivals, Job, Plan, Pool

INVOICE = Job("App\\Jobs\\SendInvoice", (0.05, 0.25), tries=3, backoff=(1, 5, 10), fails=0.02)
WELCOME = Job("App\\Mail\\WelcomeMail", (0.2, 0.6), timeout=30)
REPORT = Job("App\\Jobs\\BuildReport", (1.0, 4.0), timeout=50, tries=1, fails=0.01)
REMINDER = Job("App\\Notifications\\CartReminder")
ORDER = Job("App\\Jobs\\ConfirmOrder", (0.5, 1.5))

HEALTHY = Plan(
    targets={"default": 60, "emails": 60, "reports": 600},
    pools=(
        Pool("default", ("default",), workers=4),
        Pool("emails", ("emails",), workers=3),
        Pool("reports", ("reports",), workers=2),
    ),
    arrivals=(
        Arrivals("default", INVOICE, per_second=4),
        Arrivals("emails", WELCOME, per_second=2),
        Arrivals("reports", REPORT, per_second=0.2),
        Arrivals("default", REMINDER, per_second=0.2, delay=120),
    ),
)


@dataclass(frozen=True, slots=True)
class Incident:
    """
    What happens, where one sees it, and the world that it happens in.

    What stands in "quotes" in a line of `look_at`, the status page says within two intervals.
    """

    description: str
    look_at: tuple[str, ...]
    plan: Plan
