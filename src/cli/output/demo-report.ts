import { dataOf } from '../../domain/envelope.ts';
import { Status } from '../../domain/submission.ts';
import { escapeText } from '../../domain/text.ts';
import type { Sandbox } from '../../sandbox/server.ts';
import type { RecordedObservation } from '../../watch/ports.ts';
import { requests } from '../await-final.ts';
import { paintFor } from './colors.ts';
import { createProgress } from './progress.ts';

/** Prints the progress and the summary of the demo. The lag is exact, because the sandbox knows the time of finality. */
export function createDemoReport(demo: { total: number; sandbox: Sandbox; stream: NodeJS.WriteStream }) {
  const { total, sandbox, stream } = demo;
  const paint = paintFor(stream);
  const print = (text: string) => stream.write(`${text}\n`);
  const progress = createProgress(total, 'finalized', stream);
  const lagsMs: number[] = [];
  const polls: number[] = [];
  const finalityMs: number[] = [];

  return {
    started(url: string, apiKey: string): void {
      print(paint('bold', `tracking ${total} submissions made over 45 s`));
      print(
        `upstream: a sandbox at ${sandbox.url}, with a clock 10 times faster than real time (a block every 2 s, sometimes none,`,
      );
      print('          final about 0.3 s after the next block); 5 % of its sending attempts fail at first');
      print(`dawatch:  ${url}, with the dashboard; sign in with the key ${apiKey}\n`);
    },
    recorded({ result, submission, observation }: RecordedObservation): void {
      const { change } = result;
      if (!change) return;
      if (change.status === Status.failing)
        progress.line(
          `${paint('yellow', '! failing  ')} ${submission.submissionId}  upstream error: ${escapeText(submission.error ?? '')}; polling continues`,
        );
      if (change.status !== Status.finalized) return;
      const tookMs = observation.at - submission.trackedAt;
      const finalAt = sandbox.model.finalizedAt(submission.submissionId, observation.at) ?? observation.at;
      lagsMs.push(Math.max(0, observation.at - finalAt));
      polls.push(submission.polls);
      finalityMs.push(tookMs);
      const block = dataOf(change.envelope)?.block_number;
      progress.line(
        `${paint('green', '✓ finalized')} ${submission.submissionId}  block ${escapeText(String(block))}  ${seconds(tookMs)} to finality  ${requests(submission.polls)}`,
      );
      progress.advance(polls.length, `${(sum(polls) / polls.length).toFixed(1)} requests each`);
    },
    stopped: () => progress.stop(),
    summary() {
      const fixedPolls = finalityMs.map((ms) => Math.floor(ms / 500) + 1);
      print('');
      print(`submissions             ${polls.length}, all finalized, each kept with its history in SQLite`);
      print(`time to finality        ${spread(finalityMs)}`);
      print(`detection lag           ${spread(lagsMs)}  after the upstream first reported Finalized`);
      print(
        `requests per submission ${(sum(polls) / polls.length).toFixed(1)}  (polling every 5 s of upstream time: ${(sum(fixedPolls) / polls.length).toFixed(1)})`,
      );
      print(`\n${paint('bold', 'Use your own upstream:')}`);
      print('  DAWATCH_UPSTREAM_URL=https://… DAWATCH_UPSTREAM_API_KEY=… npx dawatch serve');
      print('  npx dawatch track <submission id> --wait     (in another terminal, with the key that serve printed)');
    },
  };
}

function spread(ms: readonly number[]): string {
  const sorted = ms.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return `mean ${seconds(sum(ms) / Math.max(1, ms.length))}, p50 ${seconds(at(0.5))}, p99 ${seconds(at(0.99))}`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
