/** Nobody may stop us for longer than this with one header. */
export const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * Whole milliseconds an answer asks us to wait; null where it doesn't say or says nothing usable (zero, past, junk).
 * A date is read against the answer's own Date header, so that a skewed clock on either side doesn't matter.
 */
export function retryAfterMs(answer: { retryAfter: string | null; date: string | null }): number | null {
  const text = answer.retryAfter?.trim();
  if (!text) return null;
  const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : untilDate(text, answer.date);
  return ms !== null && ms > 0 ? Math.min(Math.ceil(ms), MAX_RETRY_AFTER_MS) : null;
}

/** The three forms of an HTTP date: each starts with the day, and all are GMT, though the last one doesn't say so. */
const httpDate = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:[a-z]*, .* (?:GMT|UTC)| [A-Z][a-z]{2} [ \d]\d .* \d{4})$/;

function untilDate(text: string, dateHeader: string | null): number | null {
  if (!httpDate.test(text) || !dateHeader) return null;
  const ms = Date.parse(/ (?:GMT|UTC)$/.test(text) ? text : `${text} GMT`) - Date.parse(dateHeader);
  return Number.isNaN(ms) ? null : ms;
}
