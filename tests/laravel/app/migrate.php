<?php
// Creates the tables with the framework's own migrations, made from its stubs as `artisan queue:table` makes them.

use Illuminate\Database\Migrations\Migration;

$app = require __DIR__.'/boot.php';
$app->bind('db.schema', fn () => $app['db']->connection()->getSchemaBuilder()); // what the Schema facade stands for

$stubs = [
    'jobs' => 'Queue/Console/stubs/jobs.stub',
    'failed_jobs' => 'Queue/Console/stubs/failed_jobs.stub',
    'job_batches' => 'Queue/Console/stubs/batches.stub',
    'cache' => 'Cache/Console/stubs/cache.stub',
];
foreach ($stubs as $table => $stub) {
    $known = get_declared_classes();
    $source = file_get_contents("Illuminate/$stub", true);
    $source = preg_replace(['/{{ ?table ?}}/', '/{{ ?tableClassName ?}}/'], [$table, ucfirst($table)], $source);
    eval('?>'.$source);
    foreach (array_diff(get_declared_classes(), $known) as $class) {
        if (is_subclass_of($class, Migration::class)) {
            (new $class)->up();
        }
    }
}
