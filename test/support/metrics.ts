import { systemClock } from '../../src/platform/system-clock.ts';
import { call } from './http-calls.ts';

type Sample = { name: string; labels: Record<string, string>; value: number };
export type Family = { name: string; help: string; type: string; samples: Sample[] };

const SHARED_MS = 1_000;
const scrapedAt = new Map<string, number>();

/** What /metrics answers, without any credential. Waits until it is another text than that of the scrape before. */
export async function scrape(url: string) {
  const staleAt = (scrapedAt.get(url) ?? Number.NEGATIVE_INFINITY) + SHARED_MS + 20;
  // By the server's clock, which is slower while the machine's is set back.
  while (systemClock.now() < staleAt) await new Promise((resolve) => setTimeout(resolve, 20));
  const response = await call(url, '/metrics', { headers: { 'x-api-key': [] } });
  scrapedAt.set(url, systemClock.now());
  return response;
}

/** The text format, family by family. Throws on a line that is none of it. */
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
    } else if (typed !== undefined && type !== undefined && current?.name === typed) current.type = type;
    else current?.samples.push(sampleOf(line, current));
  }
  return families;
}

function sampleOf(line: string, { name: family, type }: Family): Sample {
  const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  const isOfFamily = type === 'histogram' ? name.replace(/_(bucket|sum|count)$/, '') === family : name === family;
  if (!isOfFamily) throw new Error(`no sample of ${family}: ${line}`);
  const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = '', of = '']) => [label, of]);
  return { name, labels: Object.fromEntries(pairs), value: Number(value.replace('+Inf', 'Infinity')) };
}

/** The one sample of that name with these labels. Undefined: there is none. */
export function reading(text: string, name: string, labels: Record<string, string> = {}): number | undefined {
  const family = familiesOf(text).get(name) ?? familiesOf(text).get(name.replace(/_(bucket|sum|count)$/, ''));
  const wanted = Object.entries(labels);
  const found = family?.samples.filter(
    (sample) => sample.name === name && wanted.every(([label, value]) => sample.labels[label] === value),
  );
  return found?.length === 1 ? found[0]?.value : undefined;
}
