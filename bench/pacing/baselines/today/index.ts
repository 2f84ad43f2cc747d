export { chainPacing } from './chain-policy.ts';
export type { LearnedPacingSettings } from './policy.ts';
export { learnedPacing } from './policy.ts';
export type {
  Candidate,
  FinalizedHead,
  PacingDescription,
  PacingPolicy,
  PolicyFactory,
  PolicyReason,
  PollingCost,
  PollResult,
} from './port.ts';
export { ceilingMs, NEVER } from './port.ts';
