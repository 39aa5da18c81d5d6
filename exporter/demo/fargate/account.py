"""What an operator finds in the account besides queues and tasks: task definitions, and the scaling of the service."""

from __future__ import annotations

from botocore.session import Session

from .aws import REGION
from .plan import CLUSTER, Service

STOP_TIMEOUT = 30  # seconds; ECS's default, on Fargate at most 120


class Account:
    """Writes to ECS and Application Auto Scaling what a deployment does."""

    def __init__(self, session: Session, url: str) -> None:
        self.ecs, self.scaling = (
            session.create_client(service, REGION, endpoint_url=url) for service in ("ecs", "application-autoscaling")
        )

    def deploy(self, service: Service) -> None:
        """A cluster, a service with two revisions of its task definition, and limits for its scaling."""
        self.ecs.create_cluster(clusterName=CLUSTER)
        command = ["php", "artisan", "queue:work", "sqs", f"--timeout={service.timeout}"]
        container = {"name": "worker", "image": "registry.internal/worker", "command": command, "memory": 512}
        for version in ("1.7.4", "1.8.0"):
            image = {"image": f"registry.internal/worker:{version}", "stopTimeout": STOP_TIMEOUT}
            self.ecs.register_task_definition(family=service.name, containerDefinitions=[container | image])
        self.ecs.create_service(cluster=CLUSTER, serviceName=service.name, taskDefinition=service.name, desiredCount=0)
        self.scaling.register_scalable_target(
            **about(service), MinCapacity=min(service.tasks, 1), MaxCapacity=max(service.most_tasks, service.tasks, 1)
        )
        queue = [{"Name": "QueueName", "Value": service.queue}]
        metric = {"Namespace": "Custom/QueueWorker", "MetricName": "BacklogPerTask", "Dimensions": queue}
        cooldown = {"ScaleInCooldown": 0 if service.scales_in else 300, "ScaleOutCooldown": 60}
        self.scaling.put_scaling_policy(
            **about(service),
            PolicyName="backlog-per-task",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration=cooldown
            | {
                "TargetValue": service.acceptable,
                "CustomizedMetricSpecification": metric | {"Statistic": "Average"},
            },
        )

    def scale_in_suspended(self, service: Service) -> bool:
        """Whether somebody has told the scaling to take no task away."""
        found = self.scaling.describe_scalable_targets(
            ServiceNamespace="ecs", ResourceIds=[about(service)["ResourceId"]]
        )["ScalableTargets"]
        return any(target.get("SuspendedState", {}).get("DynamicScalingInSuspended") for target in found)


def about(service: Service) -> dict[str, str]:
    """How Application Auto Scaling calls the number of a service's tasks."""
    return {
        "ServiceNamespace": "ecs",
        "ResourceId": f"service/{CLUSTER}/{service.name}",
        "ScalableDimension": "ecs:service:DesiredCount",
    }
