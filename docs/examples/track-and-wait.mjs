// node track-and-wait.mjs ID…: tracks submissions and prints each one when it is final.
import { ApiError, DawatchClient } from '@dawatch/client';

const client = new DawatchClient({
  url: process.env.DAWATCH_URL ?? 'http://127.0.0.1:8080',
  apiKey: process.env.DAWATCH_API_KEY,
});
const ids = process.argv.slice(2);

try {
  // When this resolves, the ids are on the server's disk, and the server polls them even if this process ends.
  await client.track(ids, { metadata: { example: true } });

  // Ids that are final already come first. It continues through restarts of the server.
  for await (const submission of client.untilFinal(ids))
    console.log(submission.status, submission.submission_id, submission.data?.block_number ?? '');
} catch (error) {
  if (!(error instanceof ApiError)) throw error;
  console.error(error.message, error.errors);
  process.exitCode = 1;
}
