// Bundles the page that draws: src/main.jsx → out/.
import { build } from 'esbuild';

// Bundled as it is, this package hands out a module where a class is expected.
const unwrap = {
  name: 'unwrap',
  setup(builder) {
    builder.onResolve({ filter: /^react-custom-scrollbars-2$/ }, ({ path }) => ({ path, namespace: 'unwrap' }));
    builder.onLoad({ filter: /.*/, namespace: 'unwrap' }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(`${path}/lib/index.js`)}).Scrollbars;`,
      resolveDir: import.meta.dirname,
    }));
  },
};
await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: ['src/main.jsx'],
  outdir: 'out',
  bundle: true,
  minify: true,
  format: 'iife',
  platform: 'browser',
  plugins: [unwrap],
  define: { 'process.env.NODE_ENV': '"production"', 'process.env.JEST_WORKER_ID': 'undefined', global: 'window' },
  loader: { '.svg': 'dataurl', '.png': 'dataurl', '.woff': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl' },
  conditions: ['browser', 'module', 'import'],
  logLevel: 'error',
});
