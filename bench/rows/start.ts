import type { Row } from '../row.ts';
import { startServer, temporaryFolder } from '../support/processes.ts';

/** Each start creates the ledger. Node's compile cache is kept from the previous round, as on any machine after its first start. */
export const row: Row = {
  rounds: 7,
  metrics: [
    {
      what: 'start to ready with none tracked',
      beside: '–',
      target: { max: 400 },
      unit: 'ms',
      value: ({ readyMs = 0 }) => readyMs,
      context: () => 'from the start of the process to 200 at /readyz',
    },
  ],
  async open() {
    return {
      async round() {
        const folder = temporaryFolder();
        const server = await startServer(folder.path, {
          upstreams: { default: { url: 'http://127.0.0.1:9', api_key: 'bench' } },
        });
        await server.stop();
        folder.remove();
        return { readyMs: server.readyMs };
      },
      async close() {},
    };
  },
};
