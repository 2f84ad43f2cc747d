import type { BenchServer } from './processes.ts';

/** The sum of all series of a metric of the server, whatever their labels. */
async function metricOf({ url, adminToken }: BenchServer, name: string): Promise<number> {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${adminToken}` } });
  const lines = (await answer.text())
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** Answers committed so far. */
export const pollsOf = (server: BenchServer) => metricOf(server, 'dawatch_polls_total');
