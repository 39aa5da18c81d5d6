<?php

use Illuminate\Queue\Events;

/**
 * What really happened: one JSON line an event, in the file that TRUTH_LOG names.
 *
 * Nobody can log at the very moment at which a row is written. So each line says between which two moments it was:
 * `after`, the last one at which this process knew that it had not happened, and `at`, the first at which it had.
 * Both are seconds on the machine's monotonic clock, which other processes can compare with their own, and which no
 * bent clock touches. `clock` is what PHP took for the Unix time at the end.
 */
final class Truth
{
    private static $after;

    /** The next event has not happened yet. */
    public static function begin()
    {
        self::$after = self::now();
    }

    /** Says that the event has happened since `begin`. */
    public static function tell($event, array $facts = [])
    {
        $line = ['event' => $event, 'after' => self::$after, 'at' => self::now(), 'clock' => microtime(true)];
        $line += ['pid' => getmypid(), 'pool' => getenv('DB_APPLICATION_NAME') ?: ''] + $facts;
        file_put_contents(getenv('TRUTH_LOG'), json_encode($line)."\n", FILE_APPEND | LOCK_EX);
    }

    /** Has a worker tell what it does. Its log comes from the framework's own events. */
    public static function listen($events)
    {
        $tell = function ($name) {
            return fn ($event) => self::tell($name, self::facts($event->job));
        };
        // void: what a listener of Looping returns decides whether the worker goes on
        $events->listen(Events\Looping::class, function () { self::begin(); });
        $events->listen(Events\JobProcessing::class, $tell('started'));
        $events->listen(Events\JobProcessed::class, $tell('processed'));
        $events->listen(Events\JobFailed::class, $tell('failed'));
        $events->listen(Events\WorkerStopping::class, function ($event) {
            self::tell('stopped', ['status' => $event->status]);
        });
        self::begin();
        self::tell('worker');
    }

    private static function facts($job)
    {
        return [
            'id' => $job->getJobId(),
            'uuid' => $job->uuid(),
            'queue' => $job->getQueue(),
            'class' => $job->resolveName(),
            'attempts' => $job->attempts(),
            'released' => $job->isReleased(),
        ];
    }

    private static function now()
    {
        return hrtime(true) / 1e9;
    }
}
