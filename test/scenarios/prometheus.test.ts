import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { call, pathOf, post } from '../support/app/http-calls.ts';
import {
  type Family,
  familiesOf,
  isPromtoolMissing,
  promtool,
  scrape,
} from '../support/app/metrics.ts';
import { useAppWithSandbox } from '../support/app/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';

const RULES = 'config/prometheus/alerts.yml';
const CONFIG = 'config/prometheus/prometheus.yml';
const DASHBOARD = 'config/grafana/dawatch.json';

type Rule = {
  record?: string;
  alert: string;
  expr: string;
  annotations: { summary: string; description: string };
};
type Panel = {
  id: number;
  title: string;
  type: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
};
const rules = (
  parse(readFileSync(RULES, 'utf8')) as { groups: { rules: Rule[] }[] }
).groups.flatMap((group) => group.rules);
const { panels } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as { panels: Panel[] };
const shown = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
);

const app = useAppWithSandbox();
let text = '';
let families: Map<string, Family>;
app.prepare(async () => {
  const id = app.submit();
  await post(app.url, { submission_id: id });
  await call(app.url, `${pathOf(id)}/wait?timeout_s=240`);
  text = (await scrape(app.url)).text;
  families = familiesOf(text);
});

/** Returns the families of an expression, and the labels that it filters and groups by. */
function namesIn(expr: string): string[] {
  return [...expr.matchAll(/\b(?:dawatch|process|nodejs)_\w+/g)].map(([name]) => name);
}

function familyOf(name: string): Family | undefined {
  const family = families.get(name.replace(/_(bucket|sum|count)$/, ''));
  return family?.type === 'histogram' ? family : families.get(name);
}

it('every metric of the dashboard and of the alert rules exists', () => {
  for (const { expr } of [...shown, ...rules]) {
    const names = namesIn(expr);
    const isRecorded = rules.some(({ record }) => record && expr.includes(record));
    expect(names.length > 0 || isRecorded || expr.startsWith('up{'), expr).toBe(true);
    for (const name of names) expect(familyOf(name), `${name} in ${expr}`).toBeDefined();
  }
});

it('histograms are queried by their buckets, sums and counts, and rates and increases only of counters', () => {
  for (const { expr } of [...shown, ...rules]) {
    for (const name of namesIn(expr))
      expect(name.endsWith('_bucket') || /_(sum|count)$/.test(name)).toBe(
        familyOf(name)?.type === 'histogram',
      );
    for (const [, name = ''] of expr.matchAll(/\b(?:rate|increase)\((\w+)/g))
      expect(['counter', 'histogram'], expr).toContain(familyOf(name)?.type);
  }
});

it('every metric of dawatch is on the dashboard', () => {
  const onIt = new Set(
    shown.flatMap(({ expr }) => namesIn(expr).map((name) => familyOf(name)?.name)),
  );
  const missing = [...families.keys()].filter(
    (name) => name.startsWith('dawatch_') && !onIt.has(name),
  );
  expect(missing).toEqual([]);
});

it('every alert has a summary and a remedy', () => {
  const alerts = rules.filter(({ record }) => record === undefined);
  expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length);
  for (const { annotations } of alerts) {
    expect(annotations.summary.length).toBeGreaterThan(15);
    expect(annotations.description.length).toBeGreaterThan(50);
  }
});

it('docs/observability.md has every family of dawatch, with its labels, type and meaning (npm run docs:metrics)', () => {
  const document = readFileSync('docs/observability.md', 'utf8');
  const rows = new Map(
    [...document.matchAll(/^- `(dawatch_\w+)(?:\{([\w,]+)\})?` \((\w+)\): (.+)$/gm)].map(
      ([, name = '', labels = '', type, help]) => [name, { labels: labels.split(','), type, help }],
    ),
  );
  const ours = [...families.values()].filter(({ name }) => name.startsWith('dawatch_'));
  expect([...rows.keys()].toSorted()).toEqual(ours.map(({ name }) => name).toSorted());
  for (const { name, type, help, samples } of ours) {
    expect(rows.get(name), name).toMatchObject({ type, help });
    for (const label of samples.flatMap((sample) => Object.keys(sample.labels)))
      if (label !== 'le') expect(rows.get(name)?.labels, name).toContain(label);
  }
});

describe.skipIf(isPromtoolMissing())('promtool accepts', () => {
  it('the metrics', () => {
    expect(promtool(['check', 'metrics'], text)).toEqual({ status: 0, output: '' });
    // The check detects a mistake.
    expect(
      promtool(['check', 'metrics'], 'bad_total{} 1\n# TYPE bad_total gauge\n').status,
    ).not.toBe(0);
  });

  it('the alert rules and the example configuration', () => {
    expect(promtool(['check', 'rules', RULES])).toMatchObject({ status: 0 });
    const checked = promtool(['check', 'config', CONFIG]);
    expect(checked).toMatchObject({ status: 0 });
    expect(checked.output).toContain('alerts.yml');
  });

  it('the queries of the dashboard', () => {
    const file = join(tempFolder(), 'dashboard.yml');
    const expressions = shown.map(({ expr }, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
    }));
    writeFileSync(file, stringify({ groups: [{ name: 'dashboard', rules: expressions }] }));
    expect(promtool(['check', 'rules', file])).toMatchObject({ status: 0 });
  });
});
