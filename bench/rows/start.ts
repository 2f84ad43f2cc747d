import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { inTurns, type Row } from '../row.ts';
import { installPackage, packPackages } from '../support/packages.ts';
import { costsOf, startServer, temporaryFolder } from '../support/processes.ts';

/**
 * Each start of the installed package creates the ledger. Node's compile cache is kept from the
 * previous round, as on any machine after its first start.
 */
export const row: Row = {
  rounds: 9,
  metrics: [
    {
      what: 'CPU time of a start, until it is ready with none tracked',
      beside: '`node -e 0`',
      unit: '',
      value: ({ startS = 0, nodeS = 0 }) => startS / nodeS,
      context: ({ startS = 0, nodeS = 0 }) =>
        `${Math.round(startS * 1_000)} and ${Math.round(nodeS * 1_000)} ms`,
    },
    {
      what: 'start to ready with none tracked',
      target: { max: 280 },
      unit: 'ms',
      value: ({ readyMs = 0 }) => readyMs,
      context: () => 'from the start of the process to 200 at /readyz',
    },
  ],
  async open() {
    const packed = packPackages();
    const installed = installPackage(packed.server);
    const program = join(installed.path, 'node_modules/dawatch/main.js');
    return {
      async round(index) {
        const round = { startS: 0, nodeS: 0, readyMs: 0 };
        await inTurns(index, [
          async () => {
            const folder = temporaryFolder();
            const upstreams = { default: { url: 'http://127.0.0.1:9', api_key: 'bench' } };
            const server = await startServer(folder.path, { upstreams }, program);
            round.startS = costsOf(server.pid).cpuS;
            round.readyMs = server.readyMs;
            await server.stop();
            folder.remove();
          },
          async () => {
            const script =
              'const { user, system } = process.cpuUsage(); console.log(user + system)';
            const { stdout } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' });
            round.nodeS = Number(stdout) / 1e6;
          },
        ]);
        return round;
      },
      async close() {
        installed.remove();
        packed.remove();
      },
    };
  },
};
