<?php

namespace App\Jobs;

use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Queue\InteractsWithQueue;

/**
 * Takes its time, then ends as its mode says: ok, fail, fail_once, give_up (fails itself), release:SECONDS (twice) or
 * eat:MEGABYTES, which needs that much memory.
 */
class SleepJob implements ShouldQueue
{
    use InteractsWithQueue, Queueable;

    public $seconds;

    public $mode;

    public function __construct($seconds = 0.1, $mode = 'ok')
    {
        $this->seconds = $seconds;
        $this->mode = $mode;
    }

    public function handle()
    {
        $end = hrtime(true) / 1e9 + $this->seconds;
        while (($left = $end - hrtime(true) / 1e9) > 0) {
            usleep((int) ($left * 1e6) + 1); // a signal ends it early
        }
        \Truth::begin();

        [$mode, $delay] = explode(':', $this->mode) + [1 => 0];
        if ($mode === 'fail' || ($mode === 'fail_once' && $this->attempts() < 2)) {
            throw new \RuntimeException('this job fails');
        }
        if ($mode === 'eat') {
            str_repeat('.', $delay << 20);
        }
        if ($mode === 'give_up') {
            $this->fail(new \RuntimeException('this job gave up'));
        }
        if ($mode === 'release' && $this->attempts() < 3) {
            $this->release((int) $delay);
        }
    }
}

class SendInvoice extends SleepJob
{
}

class SyncInventory extends SleepJob
{
}

class ImportCsv extends SleepJob
{
    public $timeout = 120;

    public $tries = 3;

    public $backoff = [1, 5, 10];

    public $maxExceptions = 2;
}
