import { redactorOf } from '../../lib/text.ts';
import { variableOf } from '../config/load.ts';

/** `warning`: it works, but needs attention. `problem`: something does not work. */
const LEVELS = ['ok', 'warning', 'problem'] as const;
export type Level = (typeof LEVELS)[number];

/** `name` is stable. `action` states the solution, null if none is needed. */
export type Finding = { name: string; status: Level; message: string; action: string | null };

/** A check of one subject, with its own time limits. */
export type Check = { name: string; run: () => Promise<Finding[]> | Finding[] };

export function ok(name: string, message: string): Finding {
  return { name, status: 'ok', message, action: null };
}

export function warning(name: string, message: string, action: string): Finding {
  return { name, status: 'warning', message, action };
}

export function problem(name: string, message: string, action: string): Finding {
  return { name, status: 'problem', message, action };
}

/** Returns the findings of a check, some of which depend on a condition. */
export function reported(...findings: (Finding | false)[]): Finding[] {
  return findings.filter((finding) => finding !== false);
}

export function worstLevel(findings: readonly Finding[]): Level {
  return LEVELS.findLast((level) => findings.some(({ status }) => status === level)) ?? 'ok';
}

export function settingName(path: string): string {
  const variable = variableOf(path);
  return variable === null ? path : `${variable} (${path})`;
}

/**
 * In their order. Never rejects: a check that fails hides no other finding. `secrets` are redacted.
 */
export async function runChecks(
  checks: readonly Check[],
  secrets: readonly string[],
): Promise<Finding[]> {
  const findings = await Promise.all(
    checks.map(async ({ name, run }) => {
      try {
        return await run();
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        return [problem(name, `the check failed: ${message}`, 'report this defect of dawatch')];
      }
    }),
  );
  const redact = redactorOf(secrets);
  return findings.flat().map(({ message, action, ...finding }) => ({
    ...finding,
    message: redact(message),
    action: action && redact(action),
  }));
}
