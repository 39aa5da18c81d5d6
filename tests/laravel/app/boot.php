<?php
// Laravel 8.83 from Debian's packages. They bring the components without the framework around them,
// so this is that framework: one container, the configuration, the service providers. Returns the container.

use Illuminate\Contracts;

// Debian's PHP is newer than its Laravel, which is loud about it.
error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);

foreach (['Bus', 'Cache', 'Config', 'Console', 'Database', 'Events', 'Filesystem', 'Queue', 'Redis'] as $package) {
    require_once "Illuminate/$package/autoload.php";
}
require __DIR__.'/truth.php';
require __DIR__.'/jobs.php';

/** As much of Illuminate\Foundation\Application as the components call. */
class Application extends Illuminate\Container\Container
{
    public function environment()
    {
        return 'testing';
    }

    public function isDownForMaintenance()
    {
        return false;
    }

    public function runningUnitTests()
    {
        return false;
    }
}

/** Exceptions of jobs are part of what is observed, so they go into the truth. */
class Handler implements Contracts\Debug\ExceptionHandler
{
    public function report(Throwable $e)
    {
        Truth::tell('exception', ['class' => get_class($e), 'message' => $e->getMessage()]);
    }

    public function shouldReport(Throwable $e)
    {
        return true;
    }

    public function render($request, Throwable $e)
    {
        throw $e;
    }

    public function renderForConsole($output, Throwable $e)
    {
        fwrite(STDERR, "$e\n");
    }
}

$app = new Application;
Application::setInstance($app);
Illuminate\Support\Facades\Facade::setFacadeApplication($app);
$app->instance('app', $app);
$app->instance('config', new Illuminate\Config\Repository(require __DIR__.'/config.php'));
$app->instance(Contracts\Foundation\Application::class, $app);
$app->instance(Contracts\Debug\ExceptionHandler::class, new Handler);

$aliases = [
    'app' => Contracts\Container\Container::class,
    'cache' => Contracts\Cache\Factory::class,
    'cache.store' => Contracts\Cache\Repository::class,
    'events' => Contracts\Events\Dispatcher::class,
    'queue' => Contracts\Queue\Factory::class,
];
foreach ($aliases as $name => $contract) {
    $app->alias($name, $contract);
}

$providers = [
    Illuminate\Events\EventServiceProvider::class,
    Illuminate\Bus\BusServiceProvider::class,
    Illuminate\Filesystem\FilesystemServiceProvider::class,
    Illuminate\Database\DatabaseServiceProvider::class,
    Illuminate\Redis\RedisServiceProvider::class,
    Illuminate\Cache\CacheServiceProvider::class,
    Illuminate\Queue\QueueServiceProvider::class,
];
foreach ($providers as $provider) {
    (new $provider($app))->register();
}

return $app;
