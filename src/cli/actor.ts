import { userInfo } from 'node:os';
import type { Actor } from '../lib/actor.ts';

/** Returns the user of the system who runs the command, for the audit. */
export function commandActor(): Actor {
  return { name: `cli:${userName()}`, credentialId: null, address: null };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under an id that has no name.
    return String(process.getuid?.() ?? 'unknown');
  }
}
