// Measures the row named by its argument and sends the result to the parent process.
import { type Metric, median, type Round, type Row } from './row.ts';

type Line = {
  what: string;
  beside: string | undefined;
  target: string | undefined;
  value: string;
  isMet: boolean;
  context: string;
};
export type RowResult = { lines: Line[]; memoryMib: number[] };

const { row } = (await import(`./rows/${process.argv[2]}.ts`)) as { row: Row };
process.send?.(await measure(row));
process.disconnect?.();

async function measure({ rounds, metrics, open }: Row): Promise<RowResult> {
  const measuring = await open();
  const measured: Round[] = [];
  const memoryMib: number[] = [];
  try {
    for (let index = 0; index <= rounds; index++) {
      const round = await measuring.round(index);
      if (index === 0) continue;
      measured.push(round);
      if (measuring.memoryMib) memoryMib.push(measuring.memoryMib());
    }
  } finally {
    await measuring.close();
  }
  const names = Object.keys(measured[0] ?? {});
  const medians = Object.fromEntries(
    names.map((name) => [name, median(measured.map((round) => round[name] ?? Number.NaN))]),
  );
  return { lines: metrics.map((metric) => lineOf(metric, measured, medians)), memoryMib };
}

function lineOf(
  { what, beside, target, unit, value, context }: Metric,
  measured: readonly Round[],
  medians: Round,
): Line {
  const values = measured.map(value);
  const middle = median(values);
  const [min, max] = [Math.min(...values), Math.max(...values)];
  const write = (number: number) => `${round(number)}${unit && ` ${unit}`}`;
  return {
    what,
    beside,
    target:
      target === undefined
        ? undefined
        : 'min' in target
          ? `≥ ${target.min} ${unit}`.trim()
          : `≤ ${target.max} ${unit}`.trim(),
    value:
      measured.length > 1 ? `${write(middle)} (${round(min)} to ${round(max)})` : write(middle),
    isMet: target === undefined || ('min' in target ? middle >= target.min : middle <= target.max),
    context: context(medians),
  };
}

function round(value: number): string {
  if (value >= 100) return value.toLocaleString('en', { maximumFractionDigits: 0 });
  return value.toLocaleString('en', { maximumSignificantDigits: value >= 10 ? 3 : 2 });
}
