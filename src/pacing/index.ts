export type { EventPacingSettings } from './policy.ts';
export { eventPacing } from './policy.ts';
export type {
  Candidate,
  FinalizedHead,
  PacingDescription,
  PacingPolicy,
  PolicyFactory,
  PollResult,
} from './port.ts';
export { ceilingMs, NEVER } from './port.ts';
