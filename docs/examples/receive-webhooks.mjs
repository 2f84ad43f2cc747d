// node receive-webhooks.mjs: receives webhooks on port 3000 and rejects those without a valid signature.
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { isSubmissionEvent } from '@dawatch/client';
import { verifyWebhook, WebhookVerificationError } from '@dawatch/client/webhook';

// During a rotation both secrets are accepted: DAWATCH_WEBHOOK_SECRET="whsec_new whsec_old".
const secret = (process.env.DAWATCH_WEBHOOK_SECRET ?? '').split(' ');
const seen = new Set();

const server = createServer(async (request, response) => {
  try {
    const event = verifyWebhook({
      payload: await buffer(request),
      headers: request.headers,
      secret,
    });
    // Delivery is at least once: an id that was received before is a repeat.
    if (!seen.has(event.id))
      console.log(event.type, isSubmissionEvent(event) ? event.data.submission.submission_id : '');
    seen.add(event.id);
    response.writeHead(204).end();
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    response.writeHead(400).end(error.problem);
  }
});
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () =>
  console.log('listening', server.address()),
);
