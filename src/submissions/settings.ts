import type { z } from 'zod';
import { days, seconds, section } from '../operations/config/section-values.ts';

export const submissionsSection = section({
  deadline_s: seconds(86_400, 1).describe(
    'Seconds until a submission that is not final ends as failed or expired',
  ),
  unknown_grace_s: seconds(900).describe(
    'Seconds for which "not found" is treated as "not yet", from the first such answer on; at least 120',
  ),
  recheck_after_s: seconds(0).describe(
    'Seconds after finality at which a submission is polled once more to detect a correction; 0: never. Choose less than the time after which the upstream deletes submissions',
  ),
}).describe('Defaults for submissions; a tracking request can override them');

export const retentionSection = section({
  submissions_days: days.describe(
    'Days for which final submissions are kept with their history, events and deliveries; 0: forever. Open ones are always kept',
  ),
}).describe('Deletion of expired data');

export type SubmissionSettings = { submissions: z.output<typeof submissionsSection> };
