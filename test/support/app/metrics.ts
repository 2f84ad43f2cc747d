import { spawnSync } from 'node:child_process';
import { systemClock } from '../../../src/lib/clock.ts';
import { call } from './http-calls.ts';

type Sample = { name: string; labels: Record<string, string>; value: number };
export type Family = { name: string; help: string; type: string; samples: Sample[] };

const SHARED_MS = 1_000;
const scrapedAt = new Map<string, number>();

/** Returns /metrics without a credential. Waits until the text differs from the previous one. */
export async function scrape(url: string) {
  const staleAt = (scrapedAt.get(url) ?? Number.NEGATIVE_INFINITY) + SHARED_MS + 20;
  // By the server's clock, which runs slower after the machine's clock was set back.
  while (systemClock.now() < staleAt) await new Promise((resolve) => setTimeout(resolve, 20));
  const response = await call(url, '/metrics', { headers: { 'x-api-key': [] } });
  scrapedAt.set(url, systemClock.now());
  return response;
}

/** Parses the text format into families. Throws on an invalid line. */
export function familiesOf(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  let current: Family | undefined;
  for (const line of text.split('\n').filter((one) => one !== '')) {
    const [, name, help] = /^# HELP (\w+) (.+)$/.exec(line) ?? [];
    const [, typed, type] = /^# TYPE (\w+) (counter|gauge|histogram)$/.exec(line) ?? [];
    if (name !== undefined && help !== undefined) {
      if (families.has(name)) throw new Error(`${name} comes twice`);
      current = { name, help, type: '', samples: [] };
      families.set(name, current);
    } else if (typed !== undefined && type !== undefined && current?.name === typed)
      current.type = type;
    else current?.samples.push(sampleOf(line, current));
  }
  return families;
}

function sampleOf(line: string, { name: family, type }: Family): Sample {
  const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  const isOfFamily =
    type === 'histogram' ? name.replace(/_(bucket|sum|count)$/, '') === family : name === family;
  if (!isOfFamily) throw new Error(`no sample of ${family}: ${line}`);
  const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
    ([, label = '', of = '']) => [label, of],
  );
  return {
    name,
    labels: Object.fromEntries(pairs),
    value: Number(value.replace('+Inf', 'Infinity')),
  };
}

/** Returns the only sample with this name and these labels; undefined if there is none. */
export function reading(
  text: string,
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  const family =
    familiesOf(text).get(name) ?? familiesOf(text).get(name.replace(/_(bucket|sum|count)$/, ''));
  const wanted = Object.entries(labels);
  const found = family?.samples.filter(
    (sample) =>
      sample.name === name && wanted.every(([label, value]) => sample.labels[label] === value),
  );
  return found?.length === 1 ? found[0]?.value : undefined;
}

/** For `describe.skipIf`: in CI nothing is skipped. */
export function isPromtoolMissing(): boolean {
  if (process.env.CI || spawnSync('promtool', ['--version']).status === 0) return false;
  console.warn(
    'SKIPPED: promtool is not on the PATH; install prometheus to run the tests that need it.',
  );
  return true;
}

/** Returns the output and the exit code, which is 0 only without any complaint. */
export function promtool(
  args: readonly string[],
  input = '',
): { status: number | null; output: string } {
  const { status, stdout, stderr, error } = spawnSync('promtool', args, {
    input,
    encoding: 'utf8',
  });
  if (error) throw error;
  return { status, output: `${stdout}${stderr}` };
}
