// node shoot.mjs DASHBOARD.json PICTURE.png PROMETHEUS [NOW [SPAN [MAY_BE_EMPTY.json]]]
// NOW is a Unix time, SPAN what the picture shows, such as 15m; MAY_BE_EMPTY lists queries as "panel/A".
// Exit status 1: something is wrong with the dashboard.
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import puppeteer from 'puppeteer-core';
import UPNG from 'upng-js';

const [dashboard, picture, prometheus, now, span, mayBeEmpty] = process.argv.slice(2);
const WIDTH = 1500; // pixels
const BROWSER = '/usr/bin/chromium'; // Debian's
const COLOURS = 128; // in the picture: a third of the size, and no difference that one sees
const PATIENCE = 60_000; // milliseconds
const settings = {
  dashboard: JSON.parse(readFileSync(dashboard)),
  mayBeEmpty: mayBeEmpty ? JSON.parse(readFileSync(mayBeEmpty)) : [],
  prometheus,
  now: Number(now || Math.floor(Date.now() / 1000)),
  span,
  width: WIDTH,
};
const page = `<!doctype html><meta charset=utf8><link rel=stylesheet href=/main.css><body style="margin:0"><div id=root></div>
<script>
  window.settings = ${JSON.stringify(settings).replaceAll('<', '\\u003c')};
  window.__grafana_public_path__ = '/public/';
  window.grafanaBootData = { settings: { featureToggles: {} }, user: {}, navTree: [] };
</script><script src=/main.js></script>`;
const TYPES = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const problems = [];

// Grafana's icons are in one package, its font in another.
function where(path) {
  const font = /^\/public\/fonts\/inter\/Inter-(\w+)\.woff2$/.exec(path);
  if (font) return `node_modules/@fontsource/inter/files/inter-latin-${font[1] === 'Medium' ? 500 : 400}-normal.woff2`;
  return path.startsWith('/public/') ? path.replace('/public/build/', 'node_modules/@grafana/ui/dist/public/') : `out${path}`;
}

const server = createServer((request, response) => {
  const path = new URL(request.url, 'http://localhost').pathname;
  const type = TYPES[path.split('.').pop()] ?? 'application/octet-stream';
  try {
    if (path === '/') return response.setHeader('content-type', 'text/html').end(page);
    response.setHeader('content-type', type).end(readFileSync(new URL(where(path), import.meta.url)));
  } catch {
    if (path !== '/favicon.ico') problems.push(`no such file: ${path}`);
    response.writeHead(404).end();
  }
}).listen(0, '127.0.0.1');

const browser = await puppeteer.launch({ executablePath: BROWSER, args: ['--no-sandbox', '--disable-gpu', '--hide-scrollbars'] });
const tab = await browser.newPage();
tab.on('pageerror', (error) => problems.push(`page: ${error.message}`));
await tab.setViewport({ width: WIDTH, height: 1400 });
await tab.evaluateOnNewDocument((shift) => { // so that "a minute ago" is a minute before NOW
  const real = Date.now;
  Date.now = () => real() + shift;
}, settings.now * 1000 - Date.now());
await tab.goto(`http://127.0.0.1:${server.address().port}/`);
await tab.waitForFunction(() => window.panels && window.drawn >= window.panels, { timeout: PATIENCE })
  .catch(() => problems.push('it takes too long to draw'));
await tab.setViewport({ width: WIDTH, height: Math.ceil(await tab.evaluate(() => window.bottom)) });
await new Promise((drawn) => setTimeout(drawn, 1500)); // the last transitions
const shot = UPNG.decode(Uint8Array.from(await tab.screenshot()).buffer);
writeFileSync(picture, Buffer.from(UPNG.encode(UPNG.toRGBA8(shot), shot.width, shot.height, COLOURS)));
problems.push(...(await tab.evaluate(() => window.problems)));
await browser.close();
server.close();
for (const problem of new Set(problems)) console.log(problem);
process.exit(problems.length ? 1 : 0);
