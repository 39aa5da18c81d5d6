<?php
// What a new Laravel 8 application has in config/*.php, with the environment variables that the tests set.

$env = fn ($name, $default = null) => getenv($name) === false ? $default : getenv($name);
$retryAfter = (int) $env('RETRY_AFTER', 90);
$redis = ['host' => $env('REDIS_HOST', '127.0.0.1'), 'port' => $env('REDIS_PORT', '6379')];
$named = array_filter(['application_name' => $env('DB_APPLICATION_NAME'), 'version' => $env('DB_VERSION')]);

return [
    'queue' => [
        'default' => $env('QUEUE_CONNECTION', 'database'),
        'connections' => [
            'database' => [
                'driver' => 'database',
                'table' => 'jobs',
                'queue' => 'default',
                'retry_after' => $retryAfter,
                'after_commit' => false,
            ],
            'redis' => [
                'driver' => 'redis',
                'connection' => 'default',
                'queue' => 'default',
                'retry_after' => $retryAfter,
                'block_for' => $env('BLOCK_FOR') === null ? null : (int) $env('BLOCK_FOR'),
                'after_commit' => false,
            ],
        ],
        'failed' => ['driver' => 'database-uuids', 'database' => 'pgsql', 'table' => 'failed_jobs'],
    ],
    'database' => [
        'default' => 'pgsql',
        'connections' => [
            'pgsql' => $named + [
                'driver' => 'pgsql',
                'host' => $env('DB_HOST', '127.0.0.1'),
                'port' => $env('DB_PORT', '5432'),
                'database' => $env('DB_DATABASE', 'laravel'),
                'username' => $env('DB_USERNAME', 'laravel'),
                'password' => $env('DB_PASSWORD', 'laravel'),
                'charset' => 'utf8',
                'prefix' => '',
                'schema' => 'public',
                'sslmode' => 'prefer',
            ],
        ],
        'redis' => [
            'client' => 'phpredis',
            'options' => ['cluster' => 'redis', 'prefix' => 'laravel_database_'],
            'default' => $redis + ['database' => 0],
            'cache' => $redis + ['database' => 1],
        ],
    ],
    'cache' => [
        'default' => $env('CACHE_DRIVER', 'database'),
        'prefix' => 'laravel_cache',
        'stores' => [
            'array' => ['driver' => 'array'],
            'database' => ['driver' => 'database', 'table' => 'cache', 'connection' => null, 'lock_connection' => null],
            'file' => ['driver' => 'file', 'path' => $env('CACHE_PATH')],
            'redis' => ['driver' => 'redis', 'connection' => 'cache', 'lock_connection' => 'default'],
        ],
    ],
];
