import { variableOf } from '../config/load.ts';

/**
 * Ascending severity. `warning`: it works, but needs attention. `problem`: something does not work.
 */
const LEVELS = ['ok', 'warning', 'problem'] as const;
export type Level = (typeof LEVELS)[number];

/**
 * The result of a check. `name` is stable. `action` states the solution, null if none is needed.
 */
export type Finding = { name: string; status: Level; message: string; action: string | null };

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

/** Returns the name of a setting, with its environment variable if it has one. */
export function settingName(path: string): string {
  const variable = variableOf(path);
  return variable === null ? path : `${variable} (${path})`;
}
