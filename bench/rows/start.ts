import { join } from 'node:path';
import { inTurns, type Row } from '../row.ts';
import { installPackage, packPackages } from '../support/packages.ts';
import { startServer, temporaryFolder } from '../support/processes.ts';

/**
 * Each start creates the ledger. Node's compile cache is kept from the previous round, as on any
 * machine after its first start.
 */
export const row: Row = {
  rounds: 15,
  metrics: [
    {
      what: 'start to ready with none tracked',
      beside: '–',
      target: { max: 280 },
      unit: 'ms',
      value: ({ installedMs = 0 }) => installedMs,
      context: () => 'the installed package; from the start of the process to 200 at /readyz',
    },
    {
      what: 'the same start',
      beside: 'the sources, as they run in a clone',
      target: { max: 1.05 },
      unit: '',
      value: ({ installedMs = 0, sourcesMs = 0 }) => installedMs / sourcesMs,
      context: ({ installedMs = 0, sourcesMs = 0 }) =>
        `${Math.round(installedMs)} and ${Math.round(sourcesMs)} ms`,
    },
  ],
  async open() {
    const packed = packPackages();
    const installed = installPackage(packed.server);
    const startMs = async (program?: string) => {
      const folder = temporaryFolder();
      const upstreams = { default: { url: 'http://127.0.0.1:9', api_key: 'bench' } };
      const server = await startServer(folder.path, { upstreams }, program);
      await server.stop();
      folder.remove();
      return server.readyMs;
    };
    return {
      async round(index) {
        const measured = { installedMs: 0, sourcesMs: 0 };
        await inTurns(index, [
          async () => {
            measured.installedMs = await startMs(
              join(installed.path, 'node_modules/dawatch/src/cli/main.js'),
            );
          },
          async () => {
            measured.sourcesMs = await startMs();
          },
        ]);
        return measured;
      },
      async close() {
        installed.remove();
        packed.remove();
      },
    };
  },
};
