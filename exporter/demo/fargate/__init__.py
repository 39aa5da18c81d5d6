"""The demonstration on SQS and Fargate: AWS in miniature, and a world in it."""
