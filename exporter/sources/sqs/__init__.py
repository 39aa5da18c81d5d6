"""Laravel's `sqs` driver: queues on Amazon SQS, and the ECS services that work on them."""
