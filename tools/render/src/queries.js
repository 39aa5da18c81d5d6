// Variables and queries, as Grafana's Prometheus data source resolves and runs them.
import { FieldType, toDataFrame } from '@grafana/data';

export const { dashboard, prometheus, now, span, width } = window.settings;
export const problems = (window.problems = []);

const SCRAPE = 15; // seconds: the data source's setting "Scrape interval"
const SECONDS = { s: 1, m: 60, h: 3600, d: 86400 };
const seconds = (text) => Number(text.slice(0, -1)) * SECONDS[text.slice(-1)];

export const to = now;
export const from = now - seconds(span ?? dashboard.time.from.replace('now-', ''));
export const chosen = {}; // variable → what stands for it in a query

export function interpolate(text, step) {
  const builtin = {
    __rate_interval: `${Math.max(step + SCRAPE, 4 * SCRAPE)}s`,
    __interval: `${step}s`,
    __range: `${to - from}s`,
  };
  return text.replace(/\$\{(\w+)(?::\w+)?\}|\$(\w+)/g, (whole, braced, plain) => {
    const name = braced || plain;
    if (name in builtin) return builtin[name];
    if (name in chosen) return chosen[name];
    problems.push(`unknown variable ${whole} in ${text}`);
    return whole;
  });
}

async function ask(path, parameters) {
  const answer = await (await fetch(`${prometheus}/api/v1/${path}?${new URLSearchParams(parameters)}`)).json();
  if (answer.status !== 'success') throw new Error(answer.error);
  return answer.data;
}

// label_values looks at the whole span; of query_result we only know series of which one wants the instance.
async function choices(text) {
  const [, series, label] = /^label_values\((.*), (\w+)\)$/s.exec(text) ?? [];
  if (label) return ask(`label/${label}/values`, { 'match[]': interpolate(series, SCRAPE), start: from, end: to });
  const query = interpolate(/^query_result\((.*)\)$/s.exec(text)[1], SCRAPE);
  return (await ask('query', { query, time: to })).result.map((found) => found.metric.instance);
}

// JavaScript calls it Infinity.
const number = (text) => Number(text.replace('Inf', 'Infinity'));

export async function resolveVariables() {
  for (const variable of dashboard.templating.list) {
    if (variable.type === 'datasource') {
      chosen[variable.name] = 'prometheus';
      continue;
    }
    const values = await choices(variable.query.query);
    if (!values.length) problems.push(`variable ${variable.name} has no value: ${variable.query.query}`);
    const every = variable.allValue || `(${values.join('|')})`;
    chosen[variable.name] = variable.includeAll ? every : values[0];
  }
}

function legend(format, labels) {
  return format.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => labels[label] ?? '');
}

export async function run(target, panel, pixels) {
  const least = panel.interval ? seconds(panel.interval) : SCRAPE;
  const step = Math.max(least, Math.ceil((to - from) / Math.max(pixels, 100) / SCRAPE) * SCRAPE);
  const query = interpolate(target.expr, step);
  const range = { start: from - (from % step), end: to, step };
  const { result } = target.instant ? await ask('query', { query, time: to }) : await ask('query_range', { query, ...range });
  const empty = window.settings.mayBeEmpty.includes(`${panel.title}/${target.refId}`);
  if (!result.length && !empty) problems.push(`"${panel.title}" ${target.refId} is empty: ${query}`);
  return target.format === 'table' ? [rows(result, target, panel)] : result.map((series) => line(series, target));
}

function rows(result, target, panel) {
  const labels = [...new Set(result.flatMap((series) => Object.keys(series.metric)))].sort();
  return toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: result.map((series) => series.value[0] * 1000) },
      ...labels.map((name) => ({ name, type: FieldType.string, values: result.map((series) => series.metric[name] ?? '') })),
      {
        name: panel.targets.length > 1 ? `Value #${target.refId}` : 'Value',
        type: FieldType.number,
        values: result.map((series) => number(series.value[1])),
      },
    ],
  });
}

function line(series, target) {
  const samples = series.values ?? [series.value];
  const name = legend(target.legendFormat, series.metric);
  return toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: samples.map((sample) => sample[0] * 1000) },
      {
        name: 'Value',
        type: FieldType.number,
        labels: series.metric,
        config: { displayNameFromDS: name },
        values: samples.map((sample) => number(sample[1])),
      },
    ],
  });
}
