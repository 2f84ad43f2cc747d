import type { DawatchClient, Delivery, DeliveryDetails } from '../client/index.ts';
import { deliveryText } from '../notifications/delivery-text.ts';
import { ExitCode } from './exit.ts';
import { toJson } from './json.ts';

/** The server aborts an attempt after 15 s. */
const TIMEOUT_MS = 20_000;
const PAUSE_MS = 100;

/** Waits up to 20 s for the first attempt of a delivery, and returns the delivery. */
export async function firstAttempt(
  client: DawatchClient,
  { id }: Delivery,
): Promise<DeliveryDetails> {
  const endsAt = performance.now() + TIMEOUT_MS;
  for (;;) {
    const shown = await client.deliveries.get(id);
    if (shown.attempts.length > 0 || shown.state !== 'waiting' || performance.now() > endsAt)
      return shown;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Prints the result of a test event, and sets the exit code to 3 unless it was delivered. */
export function printTested(delivery: DeliveryDetails, { json }: { json?: boolean }): void {
  process.stdout.write(json ? `${toJson(delivery)}\n` : deliveryText(delivery));
  if (delivery.state !== 'delivered') process.exitCode = ExitCode.notFinalized;
}
