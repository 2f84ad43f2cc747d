// Tracks submissions and tells what becomes of them: node track-and-wait.mjs <submission id> …
import { ApiError, DawatchClient, isFinal } from 'dawatch/client';

const client = new DawatchClient({
  url: process.env.DAWATCH_URL ?? 'http://127.0.0.1:8080',
  apiKey: process.env.DAWATCH_API_KEY,
});
const open = new Set(process.argv.slice(2));
const done = new AbortController();

try {
  // Once this resolves they are on the server's disk: it goes on with them whatever happens here.
  await client.track([...open], { metadata: { example: true } });

  // From the very first event on, so that nothing is missed. A service keeps the newest `seq`, and goes on `after` it.
  for await (const event of client.events({ after: 0, types: ['submission.*'], signal: done.signal })) {
    const { submission } = event.data;
    if (!open.has(submission.submission_id)) continue;
    console.log(event.seq, event.type, submission.submission_id, submission.data?.block_number ?? '');
    if (isFinal(submission.status)) open.delete(submission.submission_id);
    if (open.size === 0) done.abort();
  }
} catch (error) {
  if (!(error instanceof ApiError)) throw error;
  console.error(error.message, error.errors);
  process.exitCode = 1;
}
