<?php
// Pushes jobs: php dispatch.php --n=10 --rate=5 --class=SendInvoice --queue=default --seconds=0.1 --delay=0 --mode=ok
// `rate` is in jobs a second, 0 for as fast as it goes; `conn` is a connection of config/queue.php.

$app = require __DIR__.'/boot.php';

$given = getopt('', ['n:', 'rate:', 'class:', 'queue:', 'seconds:', 'delay:', 'mode:', 'conn:']);
$defaults = ['n' => 1, 'rate' => 0, 'class' => 'SleepJob', 'queue' => 'default', 'seconds' => 0.1];
$options = (object) ($given + $defaults + ['delay' => 0, 'mode' => 'ok', 'conn' => null]);

$queue = $app['queue']->connection($options->conn);
$class = "App\\Jobs\\$options->class";
$began = hrtime(true) / 1e9;

for ($i = 1; $i <= $options->n; $i++) {
    $job = new $class((float) $options->seconds, $options->mode);
    Truth::begin();
    $id = $options->delay
        ? $queue->later((int) $options->delay, $job, '', $options->queue)
        : $queue->push($job, '', $options->queue);
    Truth::tell('dispatched', ['id' => $id, 'queue' => $options->queue, 'delay' => (int) $options->delay]);

    if ($options->rate > 0 && ($early = $began + $i / $options->rate - hrtime(true) / 1e9) > 0) {
        usleep((int) ($early * 1e6));
    }
}
