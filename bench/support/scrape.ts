import type { BenchServer } from './processes.ts';

/** Returns the sum of all series of a metric of the server, regardless of labels. */
async function metricOf({ url, adminToken }: BenchServer, name: string): Promise<number> {
  const response = await fetch(`${url}/metrics`, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  const lines = (await response.text())
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** Returns the number of committed polls. */
export const pollsOf = (server: BenchServer) => metricOf(server, 'dawatch_polls_total');
