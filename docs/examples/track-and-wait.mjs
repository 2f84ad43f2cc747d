// node track-and-wait.mjs ID…: tracks submissions and prints their events until all of them are final.
import { ApiError, DawatchClient, isFinal } from '@dawatch/client';

const client = new DawatchClient({
  url: process.env.DAWATCH_URL ?? 'http://127.0.0.1:8080',
  apiKey: process.env.DAWATCH_API_KEY,
});
const open = new Set(process.argv.slice(2));
const done = new AbortController();

try {
  // When this resolves, the ids are on the server's disk, and the server polls them even if this process ends.
  await client.track([...open], { metadata: { example: true } });

  // Start with the first event, so that none is missed. A service stores the newest `seq` and resumes `after` it.
  for await (const event of client.events({
    after: 0,
    types: ['submission.*'],
    signal: done.signal,
  })) {
    const { submission } = event.data;
    if (!open.has(submission.submission_id)) continue;
    console.log(
      event.seq,
      event.type,
      submission.submission_id,
      submission.data?.block_number ?? '',
    );
    if (isFinal(submission.status)) open.delete(submission.submission_id);
    if (open.size === 0) done.abort();
  }
} catch (error) {
  if (!(error instanceof ApiError)) throw error;
  console.error(error.message, error.errors);
  process.exitCode = 1;
}
